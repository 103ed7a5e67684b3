# orthant_shipped_profiles(<variable> <name>...): puts profiles/<name>.json into a source file, whose path is the variable's.
# A change of a profile makes CMake run again.
function(orthant_shipped_profiles variable)
  set(entries "")
  foreach(name IN LISTS ARGN)
    set(file ${CMAKE_CURRENT_SOURCE_DIR}/profiles/${name}.json)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(APPEND entries "    {\"${name}\", R\"profile(${text})profile\"},\n")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/shipped_profiles.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "#include \"orthant/oracle/shipped_profiles.hpp\"

namespace orthant::oracle {
namespace {

constexpr ShippedProfile all_shipped[]{
${entries}};

}  // namespace

std::span<const ShippedProfile> shipped_profiles() { return all_shipped; }

}  // namespace orthant::oracle
")
  set(${variable} ${source} PARENT_SCOPE)
endfunction()
