# glpk::glpk, the GNU Linear Programming Kit, which comes without CMake or pkg-config files.
find_path(glpk_INCLUDE_DIR glpk.h)
find_library(glpk_LIBRARY glpk)
mark_as_advanced(glpk_INCLUDE_DIR glpk_LIBRARY)

if(glpk_INCLUDE_DIR)
  file(STRINGS ${glpk_INCLUDE_DIR}/glpk.h lines REGEX "define GLP_M[AI][JN]OR_VERSION")
  string(REGEX REPLACE "[^0-9]+" "." glpk_VERSION "${lines}")
  string(REGEX REPLACE "^\\.|\\.$" "" glpk_VERSION "${glpk_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(glpk REQUIRED_VARS glpk_LIBRARY glpk_INCLUDE_DIR VERSION_VAR glpk_VERSION)

if(glpk_FOUND AND NOT TARGET glpk::glpk)
  add_library(glpk::glpk UNKNOWN IMPORTED)
  set_target_properties(glpk::glpk PROPERTIES IMPORTED_LOCATION ${glpk_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${glpk_INCLUDE_DIR})
endif()
