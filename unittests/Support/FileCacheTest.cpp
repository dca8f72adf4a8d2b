//===- FileCacheTest.cpp - which entries are read -------------------------===//
#include "stage/Support/FileCache.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <sys/stat.h>
#include <unistd.h>

using namespace stage;
namespace fs = llvm::sys::fs;

namespace {
class FileCacheTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(fs::createUniqueDirectory("file-cache", root)); }
  void TearDown() override { fs::remove_directories(root); }

  std::string getFolder() const { return (root + "/below/stagec").str(); }
  std::vector<std::string> getFiles() const {
    std::vector<std::string> result;
    std::error_code error;
    for (fs::directory_iterator it(getFolder(), error), end; !error && it != end; it.increment(error))
      result.push_back(it->path());
    return result;
  }
  /// The file of the only entry.
  std::string getFile() const {
    std::vector<std::string> files = getFiles();
    EXPECT_EQ(files.size(), 1u);
    return files.empty() ? "" : files.front();
  }
  static std::string read(llvm::StringRef path) { return (*llvm::MemoryBuffer::getFile(path))->getBuffer().str(); }
  static void write(llvm::StringRef path, llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << text;
  }

  llvm::SmallString<128> root;
};
using Text = std::optional<std::string>;
} // namespace

TEST_F(FileCacheTest, EntriesAreFoundByTheirKey) {
  FileCache cache(getFolder());
  EXPECT_EQ(cache.load("key"), Text());
  cache.store("key", "value");
  cache.store("k", "eyvalue");
  cache.store("", std::string("\0\n", 2));
  EXPECT_EQ(cache.load("key"), Text("value"));
  EXPECT_EQ(cache.load("k"), Text("eyvalue"));
  EXPECT_EQ(cache.load(""), Text(std::string("\0\n", 2)));
  EXPECT_EQ(cache.load("ke"), Text());
  cache.store("key", "new");
  EXPECT_EQ(FileCache(getFolder()).load("key"), Text("new"));
  EXPECT_EQ(getFiles().size(), 3u); // and nothing half written
}

TEST_F(FileCacheTest, NothingIsKeptWithoutFolder) {
  FileCache none, refused("/dev/null/stagec");
  for (const FileCache *cache : {&none, &refused}) {
    cache->store("key", "value");
    EXPECT_EQ(cache->load("key"), Text());
  }
  EXPECT_FALSE(none.isOn());
}

// An entry whose name is that of another key's hash has that key's file.
TEST_F(FileCacheTest, EntriesOfOtherKeysAreNone) {
  FileCache cache(getFolder());
  cache.store("key", "value");
  std::string file = getFile();
  cache.store("yek", "other value"); // as long
  for (const std::string &path : getFiles())
    if (path != file)
      write(file, read(path));
  EXPECT_EQ(cache.load("key"), Text());
  EXPECT_EQ(cache.load("yek"), Text("other value"));
}

TEST_F(FileCacheTest, DamagedEntriesAreNone) {
  FileCache cache(getFolder());
  cache.store("key", "value");
  std::string file = getFile(), whole = read(file);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = char(damaged[i] ^ 1 << i % 8);
    for (const std::string &text : {damaged, whole.substr(0, i)}) {
      write(file, text);
      EXPECT_EQ(cache.load("key"), Text()) << i;
    }
  }
  cache.store("key", "value");
  EXPECT_EQ(cache.load("key"), Text("value"));
  EXPECT_EQ(read(file), whole);
}

TEST_F(FileCacheTest, EntriesThatOthersMayWriteAreNone) {
  mode_t before = ::umask(0);
  FileCache cache(getFolder());
  cache.store("key", "value");
  ::umask(before);
  std::string file = getFile();
  struct stat status = {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  for (mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_EQ(cache.load("key"), Text());
  }
  ASSERT_EQ(::chmod(file.c_str(), 0444), 0);
  EXPECT_EQ(cache.load("key"), Text("value"));
}

TEST_F(FileCacheTest, EntriesOfOtherUsersAreNone) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can give a file away";
  FileCache cache(getFolder());
  cache.store("key", "value");
  ASSERT_EQ(::chown(getFile().c_str(), 65534, 65534), 0);
  EXPECT_EQ(cache.load("key"), Text());
  cache.store("key", "value"); // in a file of our own
  EXPECT_EQ(cache.load("key"), Text("value"));
}

TEST_F(FileCacheTest, LinksAndPipesAreNone) {
  FileCache cache(getFolder());
  cache.store("key", "value");
  std::string file = getFile(), elsewhere = (root + "/elsewhere").str();
  ASSERT_FALSE(fs::rename(file, elsewhere));
  ASSERT_FALSE(fs::create_link(elsewhere, file));
  EXPECT_EQ(cache.load("key"), Text());
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(cache.load("key"), Text());
  cache.store("key", "value");
  EXPECT_EQ(cache.load("key"), Text("value"));
}

TEST_F(FileCacheTest, TheFolderStaysSmall) {
  constexpr uint64_t maxBytes = 8'000;
  FileCache cache(getFolder(), maxBytes);
  cache.store("large", std::string(maxBytes / 8, 'x'));
  EXPECT_EQ(cache.load("large"), Text());
  std::string value(100, 'x');
  std::string foreign = getFolder() + "/notes";
  cache.store("first", value);
  write(foreign, "of the user");
  for (unsigned i = 0; i < 400; ++i)
    cache.store(std::to_string(i), value);
  EXPECT_LT(getFiles().size(), 200u); // 402 without removal; some 60 fit
  EXPECT_EQ(cache.load("399"), Text(value));
  EXPECT_EQ(cache.load("first"), Text());
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(FileCacheTest, FoldersComeFromTheEnvironment) {
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(getCacheFolder(), "/xdg/stagec");
  ::setenv("XDG_CACHE_HOME", "not/absolute", 1);
  EXPECT_EQ(getCacheFolder(), "/home/me/.cache/stagec");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(getCacheFolder(), "/home/me/.cache/stagec");
  ::unsetenv("HOME");
  EXPECT_EQ(getCacheFolder(), "");
}
