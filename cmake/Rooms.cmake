# tw_room(NAME DEPS room...): one static library per folder of tilewright/, with its unit tests.
#
# A room sees only its own headers and those of the rooms it names: each room's include path holds nothing but a
# link to its folder, so an include the design does not allow fails to compile.

option(TW_SANITIZE "Build with address and undefined-behaviour sanitizers" OFF)

# -Wno-restrict: false reports of GCC 12 on std::string (GCC PR 105651).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")  # of the asan preset: quick to build, lines in its reports
add_library(tw_flags INTERFACE)
target_compile_options(tw_flags INTERFACE -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wno-restrict -fno-math-errno
                       -ffp-contract=off)
if(TW_SANITIZE)
  # -Wno-maybe-uninitialized: false under sanitizers, as GCC's manual warns (std::regex, std::variant).
  target_compile_options(tw_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                         -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  target_link_options(tw_flags INTERFACE -fsanitize=address,undefined)
else()
  target_link_options(tw_flags INTERFACE -static-libstdc++ -static-libgcc)
endif()

# Whole-program targets (tests, tools) that may use every room link this.
add_library(tw_all INTERFACE)

# Builds every test program.
add_custom_target(unit_tests)

function(tw_tests name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} tw_test_support tw_flags GTest::gtest GTest::gtest_main rapidcheck_static
                        Threads::Threads)
  target_compile_definitions(${name} PRIVATE TW_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  # Tests that can compile kernels have ptxas look at them all. The sanitizers' build makes the same texts.
  if("${arg_DEPS}" MATCHES "tw_(lower|runtime)" AND NOT TW_SANITIZE)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/support/assembled_kernels.cpp)
    target_link_libraries(${name} PRIVATE tw_lower)
  endif()
  if(TW_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)  # half of the time to compile; what they test is optimised
  endif()
  add_dependencies(unit_tests ${name})
  include(GoogleTest)
  gtest_discover_tests(${name} NO_PRETTY_VALUES PROPERTIES TIMEOUT 300 DISCOVERY_TIMEOUT 60)
endfunction()

function(tw_room name)
  cmake_parse_arguments(arg "" "" "DEPS" ${ARGN})
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  set(test_sources ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER test_sources INCLUDE REGEX "_test\\.cpp$")

  set(view ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${view}/tilewright)
  file(CREATE_LINK ${folder} ${view}/tilewright/${name} SYMBOLIC)

  list(TRANSFORM arg_DEPS PREPEND tw_ OUTPUT_VARIABLE deps)
  if(sources)
    add_library(tw_${name} STATIC ${sources})
    target_include_directories(tw_${name} PUBLIC ${view})
    target_link_libraries(tw_${name} PUBLIC ${deps} PRIVATE tw_flags)
  else()  # a room of headers alone
    add_library(tw_${name} INTERFACE)
    target_include_directories(tw_${name} INTERFACE ${view})
    target_link_libraries(tw_${name} INTERFACE ${deps})
  endif()
  target_link_libraries(tw_all INTERFACE tw_${name})
  if(test_sources)
    tw_tests(${name}_test SOURCES ${test_sources} DEPS tw_${name})
  endif()

  # Public headers compile alone: one generated translation unit per header.
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${folder}/*.h)
  set(units)
  foreach(header ${headers})
    string(MAKE_C_IDENTIFIER ${header} unit)
    file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/headers/${unit}.cpp CONTENT "#include \"tilewright/${header}\"\n")
    list(APPEND units ${CMAKE_BINARY_DIR}/headers/${unit}.cpp)
  endforeach()
  if(units)
    add_library(tw_${name}_headers OBJECT EXCLUDE_FROM_ALL ${units})
    target_link_libraries(tw_${name}_headers PRIVATE tw_${name} tw_flags)
    target_compile_options(tw_${name}_headers PRIVATE -fsyntax-only)
    if(NOT TARGET headers)
      add_custom_target(headers)
    endif()
    add_dependencies(headers tw_${name}_headers)
  endif()
endfunction()
