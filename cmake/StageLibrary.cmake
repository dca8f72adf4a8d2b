# Headers of others that most files include, read once for all of them: two thirds of the time in which a file is
# compiled would go to headers. The project's own are not among them: a change in one builds only what includes it.
set(STAGE_COMMON_HEADERS <algorithm> <functional> <list> <map> <memory> <optional> <set> <string> <vector>
  <llvm/ADT/ArrayRef.h> <llvm/ADT/DenseMap.h> <llvm/ADT/DenseSet.h> <llvm/ADT/MapVector.h> <llvm/ADT/STLExtras.h>
  <llvm/ADT/SmallVector.h> <llvm/ADT/StringExtras.h> <llvm/ADT/StringMap.h> <llvm/ADT/StringRef.h>
  <llvm/Support/SourceMgr.h> <llvm/Support/raw_ostream.h>)
if(NOT EXISTS ${CMAKE_BINARY_DIR}/common_headers.cpp)
  file(WRITE ${CMAKE_BINARY_DIR}/common_headers.cpp "")
endif()
add_library(stage_common_headers OBJECT ${CMAKE_BINARY_DIR}/common_headers.cpp)
target_link_libraries(stage_common_headers PRIVATE stage_options)
target_precompile_headers(stage_common_headers PRIVATE ${STAGE_COMMON_HEADERS})

# stage_library(NAME SOURCES a.cpp ... DEPENDS StageSupport ... [PRIVATE_DEPENDS ...] [HEADERS <more.h> ...]
#               [INTERNAL])
#
# A wall of the house: sources are named, dependencies are named. Link lists are what
# utils/check-layering compares the includes with.
function(stage_library name)
  cmake_parse_arguments(ARG "INTERNAL" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS;HEADERS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC stage_options ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}) # Private headers of its wings.
  if(ARG_HEADERS)
    target_precompile_headers(${name} PRIVATE ${STAGE_COMMON_HEADERS} ${ARG_HEADERS})
  else()
    target_precompile_headers(${name} REUSE_FROM stage_common_headers)
  endif()
  # Programs of others may link it, unless it is internal: a part of the tools.
  add_library(stagec::${name} ALIAS ${name})
  if(NOT ARG_INTERNAL)
    install(TARGETS ${name} EXPORT stagecTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endfunction()

# stage_tool(NAME SOURCES ... DEPENDS ...): an installed executable in <build>/bin.
function(stage_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE stage_options ${ARG_DEPENDS})
  target_precompile_headers(${name} REUSE_FROM stage_common_headers)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
