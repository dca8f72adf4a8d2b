//===- RequestsTest.cpp - request files -----------------------------------===//
#include "stage/Serving/Requests.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace stage;
using namespace stage::serving;

namespace {
/// A file that is removed, and what is read of it.
struct RequestFile {
  explicit RequestFile(llvm::StringRef text) {
    int file;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("requests", "jsonl", file, path));
    llvm::raw_fd_ostream(file, /*shouldClose=*/true) << text;
    llvm::raw_string_ostream os(messages);
    DiagnosticEngine diags(sources, os);
    if (auto reader = RequestReader::open(path, {}, diags)) {
      while (auto request = reader->next([](const Request &) { return true; }))
        requests.push_back(*request);
      good = !reader->hasErrors();
    }
  }
  ~RequestFile() { llvm::sys::fs::remove(path); }

  llvm::SmallString<128> path;
  llvm::SourceMgr sources;
  std::vector<Request> requests;
  std::string messages;
  bool good = false;
};
} // namespace

/// S3, S5: arrivals in any unit are nanoseconds since the first.
TEST(Requests, ArrivalsHaveUnits) {
  for (llvm::StringRef fields :
       {R"("arrival": 5 | "arrival": 6.5)", R"("timestamp": 5000 | "timestamp": 6500)",
        R"("Timestamp": 5 | "Timestamp": 6.5)", R"("arrived_at": 5e0 | "arrived_at": 65e-1)",
        R"("arrival_time_ns": 0 | "arrival_time_ns": 1500000000)",
        R"("TIMESTAMP": "2024-02-29 23:59:59" | "TIMESTAMP": "2024-03-01T00:00:00.5Z")",
        R"("TIMESTAMP": "2023-11-16 18:17:03.9799600" | "TIMESTAMP": "2023-11-16 18:17:05.479960+00:00")"}) {
    auto [first, second] = fields.split(" | ");
    RequestFile file(
        ("{" + first + ", \"prompt\": 7, \"output\": 1}\n{" + second + ", \"prompt\": 8, \"output\": 2}").str());
    ASSERT_EQ(file.requests.size(), 2u) << file.messages;
    EXPECT_EQ(file.requests[0].arrival, 0);
    EXPECT_EQ(file.requests[1].arrival, 1'500'000'000);
    EXPECT_EQ(file.requests[1].prompt, 8);
    EXPECT_EQ(file.requests[1].output, 2);
  }
}

/// Nanoseconds since 1970 have no room in a double's digits; whole numbers are exact.
TEST(Requests, WholeNumbersAreExact) {
  RequestFile file("{\"arrival_time_ns\": 1700000000000000001, \"prompt\": 1, \"output\": 1}\n"
                   "{\"arrival_time_ns\": 1700000000000000002, \"prompt\": 1, \"output\": 1}\n");
  ASSERT_EQ(file.requests.size(), 2u) << file.messages;
  EXPECT_EQ(file.requests[1].arrival, 1);
}

TEST(Requests, DatesThatAreNone) {
  for (llvm::StringRef date :
       {"2023-02-29 00:00:00", "2023-11-16", "2023-11-16 24:00:00", "2023-11-16 18:17:03.", "2023-11-16 18:17:03+01:00",
        "2023-11-16 18:17:03.1234567890", "1969-12-31 00:00:00", "2023-1-16 18:17:03", ""}) {
    RequestFile file(("{\"TIMESTAMP\": \"" + date + "\", \"prompt\": 1, \"output\": 1}").str());
    EXPECT_NE(file.messages.find("[bad-request-field]"), std::string::npos) << date.str() << file.messages;
  }
}

/// S1: lines of any length up to the limit, wherever a piece of the file ends.
TEST(Requests, LinesOfAnyLength) {
  std::string text;
  for (size_t i = 0; i < 3000; ++i)
    text += "{\"arrival\": 1," + std::string(i % 97, ' ') + "\"prompt\": " + std::to_string(i + 1) +
            ", \"output\": 1}\r\n\n";
  RequestFile file(text);
  ASSERT_EQ(file.requests.size(), 3000u) << file.messages;
  for (size_t i = 0; i < 3000; ++i) {
    EXPECT_EQ(file.requests[i].prompt, int64_t(i + 1));
    EXPECT_EQ(file.requests[i].line, int64_t(2 * i + 1));
  }
  size_t most = size_t(1) << 20;
  std::string line = "{\"arrival\": 1, \"prompt\": 1, \"output\": 1}";
  EXPECT_TRUE(RequestFile(std::string(most - line.size(), ' ') + line).good);
  RequestFile longer(std::string(most + 1 - line.size(), ' ') + line);
  EXPECT_NE(longer.messages.find("the line has more than 1 MiB"), std::string::npos) << longer.messages;
}

/// Any bytes are a message or requests.
TEST(Requests, AnyBytes) {
  const std::string seed = "{\"arrival\": 1.5, \"prompt\": 12, \"output\": 3, \"cached\": 4}\n{\"arrival\": 2, "
                           "\"prompt\": 1, \"output\": 1}\n";
  uint64_t state = 1;
  auto random = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = seed;
    for (uint64_t n = 1 + random(3); n > 0; --n)
      switch (random(3)) {
      case 0:
        text[random(text.size())] = char(random(256));
        break;
      case 1:
        text.erase(random(text.size()), 1 + random(8));
        break;
      case 2:
        text.insert(random(text.size()), text.substr(random(text.size()), random(20)));
        break;
      }
    RequestFile file(text);
    EXPECT_EQ(file.good, file.messages.empty()) << text << file.messages;
  }
}
