//===- PrintFits.cpp - how much of a job fits into a memory ---------------===//
#include "stage/Report/Fits.h"
#include "stage/Support/Json.h"
#include "stage/Support/Table.h"

using namespace stage;

/// What a microbatch, or a batch, of so many sequences makes of the job.
static std::string describeBatch(const Fits &fits, const FitResult &size) {
  int64_t value = size.largest->value, ranks = fits.batchRanks;
  std::string text = "  " + size.name + " = " + formatCount(value) + ": ";
  if (fits.microbatches) {
    __int128 batch = __int128(value) * ranks * fits.microbatches;
    return text + "B = " + formatCount(batch) + ", " + formatCount(fits.microbatches) +
           (fits.microbatches == 1 ? " microbatch of " : " microbatches of ") + formatCount(__int128(value) * ranks) +
           " sequences\n";
  }
  return text + formatCount(value / ranks) + (value == ranks ? " sequence" : " sequences") + " of a rank\n";
}

void stage::print(llvm::raw_ostream &os, const Fits &fits) {
  os << "what fits into " << formatBytes(fits.limit) << " (" << formatCount(fits.limit)
     << " bytes) of a rank; the job as it is needs " << formatBytes(fits.peak) << " (" << formatCount(fits.peak)
     << " bytes)\n";
  Table table({{"size", Table::Left},
               {"job", Table::Right},
               {"largest", Table::Right},
               {"peak", Table::Right},
               {"exactly", Table::Right},
               {"next", Table::Right},
               {"needs", Table::Right},
               {"exactly", Table::Right}},
              2);
  for (const FitResult &size : fits.sizes) {
    std::vector<std::string> row = {size.name, formatCount(size.own)};
    if (const std::optional<FitTrial> &largest = size.largest)
      row.insert(row.end(), {formatCount(largest->value), formatBytes(*largest->peak), formatCount(*largest->peak)});
    else
      row.insert(row.end(), {"none", "", ""});
    if (!size.next) {
      row.insert(row.end(), {"-", "no limit was found"});
      table.addText(std::move(row));
    } else if (!size.next->peak) {
      row.insert(row.end(), {formatCount(size.next->value), "refused: " + size.next->refusal});
      table.addText(std::move(row));
    } else {
      row.insert(row.end(),
                 {formatCount(size.next->value), formatBytes(*size.next->peak), formatCount(*size.next->peak)});
      table.addRow(std::move(row));
    }
  }
  table.print(os);
  for (const FitResult &size : fits.sizes)
    if (size.largest && (size.name == "B" || size.name == "microbatch"))
      os << describeBatch(fits, size);
}

static void printTrial(llvm::json::OStream &json, llvm::StringRef name, const std::optional<FitTrial> &trial) {
  if (!trial) {
    json.attribute(name, nullptr);
    return;
  }
  json.attributeObject(name, [&] {
    writeNumber(json, "value", trial->value);
    if (trial->peak)
      writeNumber(json, "peak", *trial->peak);
    else
      json.attribute("refused", trial->refusal);
  });
}

void stage::printJson(llvm::raw_ostream &os, const Fits &fits) {
  {
    llvm::json::OStream json(os, 2);
    json.object([&] {
      json.attribute("schema", 1);
      json.attribute("job", fits.job);
      writeNumber(json, "ranks", fits.ranks);
      writeNumber(json, "fits", fits.limit);
      writeNumber(json, "peak", fits.peak);
      writeNumber(json, "batch_ranks", fits.batchRanks);
      if (fits.microbatches)
        writeNumber(json, "microbatches", fits.microbatches);
      json.attributeArray("sizes", [&] {
        for (const FitResult &size : fits.sizes)
          json.object([&] {
            json.attribute("size", size.name);
            writeNumber(json, "own", size.own);
            printTrial(json, "largest", size.largest);
            printTrial(json, "next", size.next);
          });
      });
    });
  }
  os << '\n';
}
