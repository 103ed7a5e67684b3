# The program, the modules but cli as static libraries, their headers, and orthantConfig.cmake for find_package(orthant).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/orthant)

# orthant::orthant is all of the library: what a program links that trains.
add_library(orthant_library INTERFACE)
set_target_properties(orthant_library PROPERTIES EXPORT_NAME orthant)
target_link_libraries(orthant_library INTERFACE orthant::train)

get_property(modules GLOBAL PROPERTY orthant_modules)
list(REMOVE_ITEM modules orthant_cli orthant_wrapper)
install(TARGETS orthant_flags orthant_library ${modules} EXPORT orthantTargets)
install(TARGETS orthant_small_blocks EXPORT orthantTargets OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/orthant DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.hpp PATTERN cli EXCLUDE PATTERN wrapper EXCLUDE)
install(TARGETS orthant RUNTIME)

install(EXPORT orthantTargets NAMESPACE orthant:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/orthantConfig.cmake.in ${PROJECT_BINARY_DIR}/orthantConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/orthantConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/orthantConfig.cmake
  ${PROJECT_BINARY_DIR}/orthantConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/Finddnnl.cmake
  ${PROJECT_SOURCE_DIR}/cmake/Findglpk.cmake
  DESTINATION ${package_dir})
