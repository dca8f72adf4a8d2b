# A copy of LLVM 14's JSON.h that clang can compile as C++20.
#
# Problem: the header of LLVM 14 uses a std::vector<Value> before Value is complete. The vector of C++20 is constexpr,
# and clang instantiates constexpr functions where they are used, so that it refuses the header; g++ waits until the end
# of the file. LLVM 15 mended its header.
#
# Algorithm: in the copy the members of Array depend on a type, so that they are instantiated where they are called. The
# copy is <build>/clang/include/llvm/Support/JSON.h; a build with clang includes it before LLVM's own headers, and so
# does utils/check-tidy, because clang-tidy reads files as clang does, whatever compiler the build uses.
#
# Limits: the text of the header is matched as LLVM 14 has it. A header in another form fails to compile.

set(STAGE_CLANG_INCLUDE_DIR ${CMAKE_BINARY_DIR}/clang/include)
if(LLVM_VERSION_MAJOR LESS 15)
  list(GET LLVM_INCLUDE_DIRS 0 llvm_include)
  file(READ ${llvm_include}/llvm/Support/JSON.h json_header)
  string(FIND "${json_header}" "class Array {" begin)
  string(FIND "${json_header}" "/// A Value is an JSON value" end)
  math(EXPR length "${end} - ${begin}")
  string(SUBSTRING "${json_header}" ${begin} ${length} array)
  string(REGEX REPLACE "\n  ((const )?(Value|iterator|const_iterator|bool|size_t|void) [^\n]*{)"
    "\n  template <typename T = Value> \\1" lazy_array "${array}")
  string(REGEX REPLACE "<typename(\\.\\.\\. Args| It)>" "<typename T = Value, typename\\1>" lazy_array "${lazy_array}")
  string(REGEX REPLACE " V(\\.|\\[)" " later<T>()\\1" lazy_array "${lazy_array}")
  string(REPLACE "friend bool operator==(const Array &L, const Array &R) { return L.V == R.V; }"
    "template <typename T = Value> bool operator==(const Array &R) const { return later<T>() == R.later<T>(); }"
    lazy_array "${lazy_array}")
  string(REPLACE "std::vector<Value> V;" "std::vector<Value> V;
  template <typename T> std::vector<T> &later() { return V; }
  template <typename T> const std::vector<T> &later() const { return V; }" lazy_array "${lazy_array}")
  string(REPLACE "${array}" "${lazy_array}" json_header "${json_header}")
  file(CONFIGURE OUTPUT ${STAGE_CLANG_INCLUDE_DIR}/llvm/Support/JSON.h CONTENT "${json_header}" @ONLY)
endif()
