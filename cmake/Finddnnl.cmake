# DNNL::dnnl. Debian's dnnl-config.cmake insists on the development files of OpenCL, which a CPU program does not need.
find_path(dnnl_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(dnnl_LIBRARY dnnl)
mark_as_advanced(dnnl_INCLUDE_DIR dnnl_LIBRARY)

if(dnnl_INCLUDE_DIR)
  file(STRINGS ${dnnl_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9]+" "." dnnl_VERSION "${lines}")
  string(REGEX REPLACE "^\\.|\\.$" "" dnnl_VERSION "${dnnl_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(dnnl REQUIRED_VARS dnnl_LIBRARY dnnl_INCLUDE_DIR VERSION_VAR dnnl_VERSION)

if(dnnl_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${dnnl_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${dnnl_INCLUDE_DIR})
endif()
