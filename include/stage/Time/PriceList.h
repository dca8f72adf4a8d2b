//===- PriceList.h - what each op takes on a machine ------------*- C++ -*-===//
//
// Problem: a step is slower than expected. Which op is priced how, and from which shape?
//
//   task                     stage  kind          shape                  type       price  times  phase
//   layers.mlp.g gate_up         0  product       8192 x 7168 x 4096     bf16  486.386590    256  forward
//   layers.attn.o mix            0  product       8192 x 4096 x 4096     bf16  277.943000    256  forward
//   layers.attn.o mix            0  element-wise  64.00 MiB beside it           31.250000    256  forward
//   layers.x all_gather          0  all_gather    16.00 MiB, 4 ranks           169.983000    512  forward
//
// A row is of all tasks of a stage that are of one op and have one price: equal layers, microbatches and ranks are
// counted once for one rank. Prices are those of tasks alone. What software runs beside a kernel, and for what the
// device waits for the host, are rows of their own.
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
  std::string phase; ///< Empty: of no op.
  const Op *op = nullptr;
  Ticks price = 0;
  int64_t count = 0;    ///< Of the lowest rank of the stage, in a step.
  bool isInside = true; ///< The tables of the machine.
};

/// In the order of first use. Nothing after a report.
std::optional<std::vector<PriceRow>> listPrices(llvm::ArrayRef<TimedPart> parts, DiagnosticEngine &diags);
/// `machines`: `h100 (bf16)`; `runtimes`: `pytorch`.
void print(llvm::raw_ostream &os, llvm::ArrayRef<PriceRow> rows, llvm::StringRef machines, llvm::StringRef runtimes);

} // namespace stage

#endif // STAGE_TIME_PRICELIST_H
