//===- RecordsTest.cpp ----------------------------------------------------===//
#include "stage/Support/Records.h"
#include "gtest/gtest.h"

using namespace stage;

/// What has no title is not in the table, what has no key is in neither of the others. JSON and CSV have all digits.
static const std::vector<Records> rows = {{{"name", "operator", "linear"},
                                           {"bytes", "bytes", 1536, formatBytes},
                                           {"", "exactly", 1536},
                                           {"calls", "", 1234567},
                                           {"time_s", "time", Record::Digits{"0.125"}},
                                           {"flops", "FLOPs", Record::Range(1000, 2500), formatFlops},
                                           {"axes", "", std::vector<std::string>{"dp", "tp"}},
                                           {"", "kind", "product"}},
                                          {{"name", "operator", "bend"},
                                           {"bytes", "bytes", 0, formatBytes},
                                           {"", "exactly", 0},
                                           {"calls", "", __int128(1) << 70},
                                           {"time_s", "time", Record::Digits{"3"}},
                                           {"flops", "FLOPs", Record::Range(7, 7), formatFlops},
                                           {"axes", "", std::vector<std::string>()},
                                           {"", "kind", "map"}}};

TEST(RecordsTest, Table) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printTable(os, rows, 2);
  EXPECT_EQ(os.str(), "  operator     bytes  exactly   time                     FLOPs  kind\n"
                      "  linear    1.50 KiB    1,536  0.125  1.00 kFLOP to 2.50 kFLOP  product\n"
                      "  bend             -        0      3                    7 FLOP  map\n");
}

TEST(RecordsTest, TextsToTheRight) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printTable(os, {{{"", "name", "a"}, {"", "kind", "b"}}}, 0, Table::Right);
  EXPECT_EQ(os.str(), "name  kind\na        b\n");
}

TEST(RecordsTest, Json) {
  std::string text;
  llvm::raw_string_ostream os(text);
  {
    llvm::json::OStream json(os);
    json.object([&] { writeRows(json, "ops", rows); });
  }
  EXPECT_EQ(os.str(), "{\"ops\":[{\"name\":\"linear\",\"bytes\":1536,\"calls\":1234567,\"time_s\":0.125,"
                      "\"least_flops\":1000,\"most_flops\":2500,\"axes\":[\"dp\",\"tp\"]},"
                      "{\"name\":\"bend\",\"bytes\":0,\"calls\":1180591620717411303424,\"time_s\":3,"
                      "\"least_flops\":7,\"most_flops\":7,\"axes\":[]}]}");
}

TEST(RecordsTest, Csv) {
  EXPECT_EQ(listKeys(rows[0]), (std::vector<std::string>{"name", "bytes", "calls", "time_s", "flops", "axes"}));
  EXPECT_EQ(listValues(rows[0]),
            (std::vector<std::string>{"linear", "1536", "1234567", "0.125", "1000 to 2500", "dp, tp"}));
}
