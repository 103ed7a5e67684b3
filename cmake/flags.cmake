# orthant_flags: what every target of ours compiles with. Nothing of it reaches a user of the installed package
# except the language standard and the include directory.
option(ORTHANT_WERROR "Warnings are errors" OFF)
option(ORTHANT_HARDEN "Position-independent executables, RELRO, stack protector, _FORTIFY_SOURCE" ON)
set(ORTHANT_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")

add_library(orthant_flags INTERFACE)
add_library(orthant::flags ALIAS orthant_flags)
set_target_properties(orthant_flags PROPERTIES EXPORT_NAME flags)
target_compile_features(orthant_flags INTERFACE cxx_std_20)
target_include_directories(orthant_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

function(orthant_compile_options)
  foreach(option ${ARGN})
    target_compile_options(orthant_flags INTERFACE $<BUILD_INTERFACE:${option}>)
  endforeach()
endfunction()

orthant_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor)
# GCC 12 warns of overlapping copies inside std::string's operator+ that cannot happen (GCC bug 105651).
orthant_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# Designated initialisers name what differs from the defaults; the rest is meant to be left out.
orthant_compile_options(-Wno-missing-field-initializers)
if(ORTHANT_WERROR)
  orthant_compile_options(-Werror)
endif()

if(ORTHANT_SANITIZE)
  orthant_compile_options(-fsanitize=${ORTHANT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(orthant_flags INTERFACE $<BUILD_INTERFACE:-fsanitize=${ORTHANT_SANITIZE}>)
elseif(ORTHANT_HARDEN)
  include(CheckPIESupported)
  check_pie_supported()
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  # The kernels keep whole rows in arrays on the stack: a canary per call is for the code that reads files.
  set(is_kernels $<STREQUAL:$<TARGET_PROPERTY:NAME>,orthant_kernels>)
  orthant_compile_options($<$<NOT:${is_kernels}>:-fstack-protector-strong>)
  # Fortified calls need an optimised build.
  orthant_compile_options($<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=2>)
  target_link_options(orthant_flags INTERFACE $<BUILD_INTERFACE:LINKER:-z,relro,-z,now>)
endif()
