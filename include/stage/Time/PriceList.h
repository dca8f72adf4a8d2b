//===- PriceList.h - what each op takes on a machine ------------*- C++ -*-===//
//
// Problem: a step is slower than expected. Which op is priced how, and from which shape?
//
//   stage  task                       kind        shape                type  price us  times  total ms
//   0      layers.mlp.g gate_up       product     8192 x 7168 x 4096   bf16   486.387    256   124.515
//   0      layers.attn.o attention    attention   8192 x 8192, 8 heads bf16   138.968    256    35.576
//   0      layers.x all_gather        all_gather  16 MiB, 4 ranks             169.983    512    87.031
//
// A row is of all tasks of a stage that are of one op and have one price: equal layers, microbatches and ranks are
// counted once for one rank. Prices are those of tasks alone.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_TIME_PRICELIST_H
#define STAGE_TIME_PRICELIST_H

#include "stage/Tasks/ClassTasks.h"
#include "stage/Time/TimedPart.h"
#include "llvm/Support/raw_ostream.h"

namespace stage {

struct PriceRow {
  unsigned part = 0, stage = 0;
  std::string task;
  std::string kind;  ///< `product`, `attention`, `element-wise`, `all_gather`, `message`, `copy`, `host`.
  std::string shape; ///< For people.
  std::string type;
  Ticks price = 0;
  int64_t count = 0;    ///< Of the lowest rank of the stage, in a step.
  bool isInside = true; ///< The tables of the machine.
};

/// In the order of first use. Nothing after a report.
std::optional<std::vector<PriceRow>> listPrices(llvm::ArrayRef<TimedPart> parts, DiagnosticEngine &diags);
/// `machines`: `h100 (bf16)`.
void print(llvm::raw_ostream &os, llvm::ArrayRef<PriceRow> rows, llvm::StringRef machines);

} // namespace stage

#endif // STAGE_TIME_PRICELIST_H
