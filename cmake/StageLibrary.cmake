# stage_precompile(NAME [DEPENDS ...] HEADERS <a.h> ...): reads headers once for all targets that reuse those of NAME. Without
# it, a file's headers take two thirds of its time. The compiler rejects them in a target with other flags.
function(stage_precompile name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;HEADERS" ${ARGN})
  if(NOT EXISTS ${CMAKE_BINARY_DIR}/${name}.cpp)
    file(WRITE ${CMAKE_BINARY_DIR}/${name}.cpp "")
  endif()
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE stage_options ${ARG_DEPENDS})
  target_precompile_headers(${name} PRIVATE ${STAGE_COMMON_HEADERS} ${ARG_HEADERS})
endfunction()

# Headers that most files include. One of the project is among them only where nearly every file includes it, because a
# change in it builds all files again: 195 of the 211 files of the libraries that name GRAPH_HEADERS include Graph.h.
set(STAGE_COMMON_HEADERS <algorithm> <functional> <list> <map> <memory> <optional> <set> <string> <vector>
  <llvm/ADT/ArrayRef.h> <llvm/ADT/DenseMap.h> <llvm/ADT/DenseSet.h> <llvm/ADT/MapVector.h> <llvm/ADT/STLExtras.h>
  <llvm/ADT/SmallVector.h> <llvm/ADT/StringExtras.h> <llvm/ADT/StringMap.h> <llvm/ADT/StringRef.h>
  <llvm/Support/SourceMgr.h> <llvm/Support/raw_ostream.h>)
set(STAGE_GRAPH_HEADERS <stage/IR/graph/Graph.h>)
stage_precompile(stage_common_headers)
stage_precompile(stage_graph_headers HEADERS ${STAGE_GRAPH_HEADERS})

# stage_library(NAME SOURCES a.cpp ... DEPENDS StageSupport ... [PRIVATE_DEPENDS ...] [HEADERS <more.h> ...]
#   [GRAPH_HEADERS] [INTERNAL])
#
# A wall of the house: sources are named, dependencies are named. Link lists are what
# utils/check-layering compares the includes with.
function(stage_library name)
  cmake_parse_arguments(ARG "GRAPH_HEADERS;INTERNAL" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS;HEADERS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC stage_options ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}) # Private headers of its wings.
  if(ARG_HEADERS)
    target_precompile_headers(${name} PRIVATE ${STAGE_COMMON_HEADERS} ${ARG_HEADERS})
  elseif(ARG_GRAPH_HEADERS)
    target_precompile_headers(${name} REUSE_FROM stage_graph_headers)
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
