//===- InstallationTest.cpp -----------------------------------------------===//
#include "stage/Support/Installation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

using namespace stage;

TEST(Installation, StdlibIsSoughtBesideTheExecutable) {
  std::string folder = getStdlibFolder("");
  EXPECT_TRUE(llvm::sys::path::is_absolute(folder)) << folder;
  EXPECT_EQ(folder.find(".."), std::string::npos) << folder;
  EXPECT_EQ(llvm::sys::path::filename(folder), "stdlib");
}

TEST(Installation, VersionIsNumbers) {
  EXPECT_FALSE(getVersion().empty());
  EXPECT_TRUE(llvm::all_of(getVersion(), [](char c) { return llvm::isDigit(c) || c == '.'; }));
}
