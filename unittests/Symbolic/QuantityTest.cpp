//===- QuantityTest.cpp ---------------------------------------------------===//
#include "stage/Symbolic/Quantity.h"
#include "gtest/gtest.h"

using namespace stage;

static Rational valueOf(llvm::StringRef text) {
  std::optional<Quantity> quantity = parseQuantity(text);
  EXPECT_TRUE(quantity) << text.str();
  return quantity ? quantity->value : Rational();
}

TEST(Quantity, EachUnitHasItsValue) {
  EXPECT_EQ(valueOf("450GB/s"), Rational::integer(450'000'000'000));
  EXPECT_EQ(valueOf("400Gbit/s"), Rational::integer(50'000'000'000)); // eight bits are a byte
  EXPECT_EQ(valueOf("80GiB"), Rational::integer(int64_t(80) << 30));
  EXPECT_EQ(valueOf("80GB"), Rational::integer(80'000'000'000));
  EXPECT_EQ(valueOf("1KB"), valueOf("1kB"));
  EXPECT_EQ(valueOf("2us"), *Rational::make(2, 1'000'000));
  EXPECT_EQ(valueOf("1.5ms"), *Rational::make(3, 2000));
  EXPECT_EQ(valueOf("2min"), Rational::integer(120));
  EXPECT_EQ(valueOf("989TFLOP/s"), Rational::integer(989'000'000'000'000));
  EXPECT_EQ(valueOf("989e12FLOP/s"), valueOf("989TFLOP/s"));
  EXPECT_EQ(valueOf("1EB"), Rational::integer(1'000'000'000'000'000'000)); // not 1 times ten to the B
  EXPECT_EQ(valueOf("700W"), Rational::integer(700));
  EXPECT_EQ(valueOf("3.60USD/h"), *Rational::make(1, 1000));
  EXPECT_EQ(valueOf("1_000B"), Rational::integer(1000));
}

TEST(Quantity, DimensionsAreThoseOfUnits) {
  EXPECT_EQ(parseQuantity("450GB/s")->dimension, Dimension::ofBytesPerSecond());
  EXPECT_EQ(parseQuantity("2us")->dimension, Dimension::ofTime());
  EXPECT_EQ(parseQuantity("2.50USD/h")->dimension, (Dimension{.seconds = -1, .dollars = 1}));
  EXPECT_FALSE(parseQuantity("450GB", Dimension::ofBytesPerSecond()));
  EXPECT_EQ(Dimension::ofBytesPerSecond().describe(), "bytes per second");
  EXPECT_EQ(*Dimension::ofBytesPerSecond().multiply(Dimension::ofTime()), Dimension::ofBytes());
  EXPECT_EQ((Dimension{.bytes = 2}.describe()), "byte^2");
  EXPECT_FALSE((Dimension{.bytes = 100}.multiply(Dimension::ofBytes())));
}

TEST(Quantity, OtherTextsAreNone) {
  for (llvm::StringRef text : {"", "80", "GB", "80 GB", "80GB/step", "400Gb/s", "989TFLOPS", "-2us", "1.B", ".5B",
                               "1.2.3B", "80GiB/", "2us/s/s", "1e400B", "4Kis", "2KiW"})
    EXPECT_FALSE(parseQuantity(text)) << text.str();
}

TEST(Quantity, PrintsTheShortestExactForm) {
  for (llvm::StringRef text :
       {"450GB/s", "80GiB", "80GB", "2us", "1.5ms", "989TFLOP/s", "700W", "2.5USD/h", "0s", "1h", "25MiB"})
    EXPECT_EQ(parseQuantity(text)->str(), text);
  EXPECT_EQ(parseQuantity("400Gbit/s")->str(), "50GB/s");
  EXPECT_EQ(parseQuantity("0.001ps")->str(), "0.001ps");
  EXPECT_EQ((Quantity{*Rational::make(1, 3), Dimension::ofTime()}.str()), "1/3 seconds");
}

TEST(Quantity, SaysWhatToWriteInstead) {
  Dimension rate = Dimension::ofBytesPerSecond(), flops = Dimension::ofFlopsPerSecond(), time = Dimension::ofTime();
  EXPECT_EQ(suggestQuantity("450G", rate), "450GB/s");
  EXPECT_EQ(suggestQuantity("989e12", flops), "989e12FLOP/s");
  EXPECT_EQ(suggestQuantity("989TFLOPS", flops), "989TFLOP/s");
  EXPECT_EQ(suggestQuantity("400Gb/s", rate), "400Gbit/s for bits, or 400GB/s for bytes");
  EXPECT_EQ(suggestQuantity("400Gbps", rate), "400Gbit/s");
  EXPECT_EQ(suggestQuantity("12", time), "12s, 12ms or 12us");
  EXPECT_EQ(suggestQuantity("12msec", time), "12ms");
  EXPECT_EQ(suggestQuantity("80GB", rate), "450GB/s"); // nobody knows per what
  EXPECT_EQ(suggestQuantity("2x"), "");
  EXPECT_EQ(suggestQuantity("989TFLOPS"), "989TFLOP/s");
}
