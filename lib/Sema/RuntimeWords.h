//===- RuntimeWords.h - the entries of runtimes ----------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_RUNTIMEWORDS_H
#define STAGE_LIB_SEMA_RUNTIMEWORDS_H

#include "stage/Sema/BoundRuntime.h"

namespace stage::sema {

struct RuntimeEntry {
  llvm::StringLiteral name;
  Rational BoundRuntime::*number = nullptr; ///< Null: a time, the launch.
  bool isTax = false;                       ///< From 0 on; another number is above 0.
  int64_t most = 1;
  int64_t BoundRuntime::*rows = nullptr; ///< Instead: a whole number of rows.
};
constexpr int64_t maxTile = 1024;

/// All may be left out.
constexpr RuntimeEntry runtimeEntries[] = {
    {"launch"},
    {"tax.collective", &BoundRuntime::taxOfCollectives, true},
    {"tax.send", &BoundRuntime::taxOfSends, true},
    {"tax.copy", &BoundRuntime::taxOfCopies, true},
    {"tax.communication", &BoundRuntime::taxOfCommunication, true},
    {"attention.kernel", &BoundRuntime::attentionKernel, false, 2},
    {"kernel.speed", &BoundRuntime::kernelSpeed, false, 2},
    {"exchange.efficiency", &BoundRuntime::exchangeEfficiency},
    {"attention.tile", nullptr, false, maxTile, &BoundRuntime::attentionTile},
};

/// The type in which the kernel of a product multiplies: a word, one of those of `flops.T`.
constexpr llvm::StringLiteral kernelTypeEntry = "type";

/// What `at` says of kernels.
struct KernelEntry {
  llvm::StringLiteral name;
  Size BoundKernels::*formula; ///< Null: a number, the speed.
  bool isTime = false;
  bool isOfProducts = false; ///< Also ops that are no element-wise kernels have it.
};
constexpr KernelEntry kernelEntries[] = {
    {"bytes", &BoundKernels::bytes},
    {"backward bytes", &BoundKernels::backwardBytes},
    {"beside bytes", &BoundKernels::besideBytes, false, true},
    {"backward beside bytes", &BoundKernels::backwardBesideBytes, false, true},
    {"floor", &BoundKernels::floor, true},
    {"backward floor", &BoundKernels::backwardFloor, true},
    {"host", &BoundKernels::host, true, true},
    {"backward host", &BoundKernels::backwardHost, true, true},
    {"speed", nullptr, false, true},
    {kernelTypeEntry, nullptr, false, true},
};

/// Classes of ops; an optimizer's kernels are the updates of parameters.
constexpr llvm::StringLiteral kernelClasses[] = {"elementwise", "contraction", "attention", "optimizer"};
constexpr llvm::StringLiteral elementwiseClass = "elementwise", optimizerClass = "optimizer";

/// Evaluates `at` or `fuse`. False after a report.
bool bindKernels(Evaluator &evaluator, const ast::KernelStmt &stmt, const ast::File &file, BoundRuntime &runtime);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_RUNTIMEWORDS_H
