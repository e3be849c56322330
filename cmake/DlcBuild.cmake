# Flags every target shares, and the two functions a folder's CMakeLists.txt is made of.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")   # no NDEBUG: an internal invariant that breaks must be heard
option(DLC_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
endif()

add_library(dlc_flags INTERFACE)
target_compile_options(dlc_flags INTERFACE -Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)   # g++ 12 sees ghosts in std::variant and std::optional
if(DLC_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1")   # the checks are what counts; -O2 takes twice as long to build
  target_compile_options(dlc_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -g1)
  target_link_options(dlc_flags INTERFACE -fsanitize=address,undefined)
endif()
option(DLC_FUZZ "Build for libFuzzer (tools/fuzz.sh)" OFF)
if(DLC_FUZZ)
  target_compile_options(dlc_flags INTERFACE -fsanitize=fuzzer-no-link,address -Wno-error -O1 -g1)
  target_link_options(dlc_flags INTERFACE -fsanitize=address)
endif()

# dlc_library(NAME [DEPS libs...] [SOURCES generated...]): a static library of every .cpp in this folder.
function(dlc_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;SOURCES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  list(APPEND sources ${ARG_SOURCES})
  if(NOT sources)
    add_library(${name} INTERFACE)   # a folder whose first file is not written yet
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
    return()
  endif()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}/core/include" PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE dlc_flags)
endfunction()

# A hung test ends after this time; the sanitizers make one several times slower.
set(DLC_TEST_SECONDS 600)
if(DLC_SANITIZE)
  set(DLC_TEST_SECONDS 3600)
endif()

# dlc_test(NAME [LABEL label] DEPS libs...): a Catch2 program of every .cpp in this folder is one ctest test.
function(dlc_test name)
  cmake_parse_arguments(ARG "" "LABEL" "DEPS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests/include" "${CMAKE_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE DLC_SOURCE_DIR="${CMAKE_SOURCE_DIR}" DLC_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} dlc_test_main dlc_flags)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${DLC_TEST_SECONDS})
endfunction()

# dlc_test_tag(NAME TAG [VARIANT name ENVIRONMENT VARIABLE=value]): the program's cases with the hidden tag [.TAG] are a
# ctest test of their own, shown as skipped when they leave with DLC_SKIP; with variants one for each.
function(dlc_test_tag name tag)
  cmake_parse_arguments(ARG "" "VARIANT;ENVIRONMENT" "" ${ARGN})
  get_test_property(${name} LABELS labels)
  set(test ${name}_${tag})
  if(ARG_VARIANT)
    string(APPEND test _${ARG_VARIANT})
  endif()
  add_test(NAME ${test} COMMAND ${name} "[${tag}]")
  set_tests_properties(${test} PROPERTIES LABELS "${labels}" TIMEOUT ${DLC_TEST_SECONDS} ENVIRONMENT "${ARG_ENVIRONMENT}"
    SKIP_REGULAR_EXPRESSION "SKIPPED: " FAIL_REGULAR_EXPRESSION "No test cases matched;No tests ran")
endfunction()
