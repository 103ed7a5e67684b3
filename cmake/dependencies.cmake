# System packages only; nothing is downloaded. scripts/install_dependencies.sh names the Debian packages,
# cmake/orthantConfig.cmake.in repeats what the library needs for users of the installed package.
# The C interface; the C++ one was removed from MPI.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI 3.1 REQUIRED COMPONENTS CXX)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl 2.6 MODULE REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(hdf5 REQUIRED IMPORTED_TARGET hdf5-serial)
pkg_check_modules(fftw3f REQUIRED IMPORTED_TARGET fftw3f)
find_package(ZLIB REQUIRED)
if(ORTHANT_TESTS)
  find_package(GTest REQUIRED)
endif()
