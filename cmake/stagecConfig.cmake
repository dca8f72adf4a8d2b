# The compiler as a library: find_package(stagec CONFIG), then link stagec::StageCompiler (stage/Compiler/Session.h).
include(CMakeFindDependencyMacro)
find_dependency(LLVM CONFIG)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/stagecTargets.cmake)
