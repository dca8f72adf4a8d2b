# Finds what the compiler stands on. LLVM 14 or later, protobuf, ANTLR4 (tool and C++ runtime), cmark-gfm.
find_program(STAGE_CCACHE ccache)
if(STAGE_CCACHE)
  # It keeps what is compiled with precompiled headers only where it is told that macros cannot change them.
  set(STAGE_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${STAGE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${STAGE_LAUNCHER})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STAGE_LAUNCHER})
endif()
find_program(STAGE_MOLD mold)
if(STAGE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# utils/setup installs 14; among several LLVMs of a machine that one is known to be whole (a newer one
# may lack the development files of what it links).
find_package(LLVM 14.0 QUIET CONFIG)
if(NOT LLVM_FOUND)
  find_package(LLVM CONFIG REQUIRED)
endif()
if(LLVM_VERSION_MAJOR LESS 14)
  message(FATAL_ERROR "LLVM 14 or later is needed, found ${LLVM_VERSION}")
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")

set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)

# Searches make and free millions of small objects: with mimalloc they take a tenth less (docs/internals/Benchmarks.md).
# Not by itself, because it aborts without the message that memory is used up (test/Driver/limits.test). Tools alone are
# linked to it: a library must not choose the allocator of the programs that use it.
option(STAGE_MIMALLOC "Link stagec to mimalloc" OFF)
if(STAGE_MIMALLOC)
  find_library(STAGE_MIMALLOC_LIBRARY mimalloc REQUIRED)
endif()

find_program(ANTLR4_TOOL antlr4 REQUIRED)
find_path(ANTLR4_INCLUDE_DIR antlr4-runtime.h PATH_SUFFIXES antlr4-runtime REQUIRED)
find_library(ANTLR4_LIBRARY NAMES libantlr4-runtime.a antlr4-runtime REQUIRED)

# Markdown with tables, for `stagec doc --html` (Debian: libcmark-gfm-dev, libcmark-gfm-extensions-dev).
find_path(CMARK_INCLUDE_DIR cmark-gfm-core-extensions.h REQUIRED)
find_library(CMARK_EXTENSIONS_LIBRARY NAMES libcmark-gfm-extensions.a cmark-gfm-extensions REQUIRED)
find_library(CMARK_LIBRARY NAMES libcmark-gfm.a cmark-gfm REQUIRED)

# The shared flags, as one interface target so that nothing is set globally.
add_library(stage_options INTERFACE)
target_include_directories(stage_options INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(stage_options INTERFACE cxx_std_20)
install(TARGETS stage_options EXPORT stagecTargets)
include(LazyJson)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_include_directories(stage_options SYSTEM BEFORE INTERFACE $<BUILD_INTERFACE:${STAGE_CLANG_INCLUDE_DIR}>)
endif()
target_include_directories(stage_options SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
# A member left out of an aggregate has its default, which is meant.
set(options -Wall -Wextra -Werror=unused-result -Wno-unused-parameter -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of g++ 12: in llvm::formatv, and for "text" + std::to_string(i); precompiled headers show more of them.
  list(APPEND options -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
    -fpch-preprocess) # Lets ccache see which precompiled headers a file was compiled with.
endif()
option(STAGE_WERROR "Treat warnings as errors" OFF)
if(STAGE_WERROR)
  list(APPEND options -Werror)
endif()
target_compile_options(stage_options INTERFACE "$<BUILD_INTERFACE:${options}>")
# address, undefined, fuzzer-no-link: see CMakePresets.json
set(STAGE_SANITIZE "" CACHE STRING "Comma-separated sanitizers to build with")
if(STAGE_SANITIZE)
  add_compile_options(-fsanitize=${STAGE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${STAGE_SANITIZE})
else()
  add_link_options(-static-libstdc++ -static-libgcc)
endif()
