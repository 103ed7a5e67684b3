# orthant_module(<name> SOURCES <files> [USES <targets>])
# USES names every module that may be included and the libraries only this module may see.
function(orthant_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES")
  add_library(orthant_${name} STATIC ${arg_SOURCES})
  add_library(orthant::${name} ALIAS orthant_${name})
  set_target_properties(orthant_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(orthant_${name} PUBLIC orthant_flags ${arg_USES})
  set_property(GLOBAL APPEND PROPERTY orthant_modules orthant_${name})
endfunction()

# orthant_append_sanitizer_options(<list>): for tests that start ranks. What Open MPI does inside is its own affair. Its
# plug-ins are unloaded before leaks are reported: only whole stacks name it.
function(orthant_append_sanitizer_options list)
  if(ORTHANT_SANITIZE)
    list(APPEND ${list}
      LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/leaks_of_mpi.supp:print_suppressions=0:fast_unwind_on_malloc=0
      TSAN_OPTIONS=ignore_noninstrumented_modules=1:detect_deadlocks=0)
    set(${list} "${${list}}" PARENT_SCOPE)
  endif()
endfunction()

# orthant_limit(<test> [<s>]): the test fails after so many seconds, half an hour if not given. This is for tests that
# hang: others may use the machine, too, and then a test takes ten times as long. Sanitizers make everything slow.
function(orthant_limit name)
  set(seconds 1800)
  if(ARGC GREATER 1)
    set(seconds ${ARGV1})
  endif()
  if(ORTHANT_SANITIZE)
    math(EXPR seconds "5 * ${seconds}")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds})
endfunction()

# orthant_test_compilation(<target>): what every executable of a test compiles with. Judges and kernels, which take the time of
# the tests, are libraries; the checks around them compile a third faster with fewer optimisations.
function(orthant_test_compilation target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(TARGET orthant_test_headers)
    # GCC takes precompiled headers only where _OPENMP is defined as it was for them, and forgets that they are the
    # system's: it warns of copies inside std::string that cannot happen.
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
    target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>")
    target_precompile_headers(${target} REUSE_FROM orthant_test_headers)
  endif()
endfunction()

# orthant_test(<module>/<file> [RANKS <n>...] [LABELS <l>...] [USES <targets>])
# Builds tests/<module>/<file>_test.cpp against its own module and registers it.
# With RANKS the test runs under mpirun, once for each number of ranks, as <module>.<file>.np<n>.
# The label `long` keeps a test out of `make test`.
function(orthant_test path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "RANKS;LABELS;USES")
  string(REPLACE "/" "." name ${path})
  string(REGEX REPLACE "/.*" "" module ${path})
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/${path}_test.cpp)
  target_link_libraries(${name} PRIVATE orthant::${module} ${arg_USES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  orthant_test_compilation(${name})
  if(NOT arg_RANKS)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "unit;${arg_LABELS}")
    orthant_limit(${name})
    return()
  endif()
  target_link_libraries(${name} PRIVATE orthant_mpi_main)
  # Under mpirun stdout looks like a terminal.
  set(environment GTEST_COLOR=no OMP_NUM_THREADS=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
  orthant_append_sanitizer_options(environment)
  foreach(ranks IN LISTS arg_RANKS)
    add_test(NAME ${name}.np${ranks} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks}
      --oversubscribe --bind-to none --quiet $<TARGET_FILE:${name}>)
    set_tests_properties(${name}.np${ranks} PROPERTIES
      PROCESSORS ${ranks} LABELS "mpi;${arg_LABELS}" ENVIRONMENT "${environment}")
    orthant_limit(${name}.np${ranks})
  endforeach()
endfunction()

# orthant_script_test(<module>/<file> [NAME <name>] [ARGUMENTS <a>...]) runs tests/<module>/<file>.py as <module>.<name>; the
# name is the file's without _test if not given.
set(ORTHANT_PYTHON /usr/bin/python3 CACHE FILEPATH "The Python that has Debian's numpy and torch")
function(orthant_script_test path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "ARGUMENTS")
  string(REGEX REPLACE "/.*" "" module ${path})
  if(NOT arg_NAME)
    string(REGEX REPLACE "^.*/(.*)_test$" "\\1" arg_NAME ${path})
  endif()
  set(name ${module}.${arg_NAME})
  add_test(NAME ${name} COMMAND ${ORTHANT_PYTHON} -B ${PROJECT_SOURCE_DIR}/tests/${path}.py ${arg_ARGUMENTS})
  set(environment "")
  orthant_append_sanitizer_options(environment)
  set_tests_properties(${name} PROPERTIES LABELS ${module} ENVIRONMENT "${environment}")
  orthant_limit(${name})
endfunction()
