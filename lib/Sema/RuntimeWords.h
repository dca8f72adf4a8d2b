//===- RuntimeWords.h - the entries of runtimes ----------------*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_RUNTIMEWORDS_H
#define STAGE_LIB_SEMA_RUNTIMEWORDS_H

#include "NamedEntries.h"
#include "stage/Sema/BoundRuntime.h"

namespace stage::sema {

struct RuntimeEntry {
  llvm::StringLiteral name;
  Rational BoundRuntime::*number = nullptr;
  bool isTax = false; ///< From 0 on; another number is above 0.
  int64_t most = 1;
  int64_t BoundRuntime::*rows = nullptr; ///< Instead: a whole number of rows.
  int64_t BoundRuntime::*time = nullptr; ///< Instead: a time.
};
constexpr int64_t maxTile = 1024;

/// All may be left out.
constexpr RuntimeEntry runtimeEntries[] = {
    {"launch", nullptr, false, 1, nullptr, &BoundRuntime::launch},
    {"step.host", nullptr, false, 1, nullptr, &BoundRuntime::stepHost},
    {"tax.collective", &BoundRuntime::taxOfCollectives, true},
    {"tax.send", &BoundRuntime::taxOfSends, true},
    {"tax.copy", &BoundRuntime::taxOfCopies, true},
    {"tax.communication", &BoundRuntime::taxOfCommunication, true},
    {"attention.kernel", &BoundRuntime::attentionKernel, false, 2},
    {"kernel.speed", &BoundRuntime::kernelSpeed, false, 2},
    {"exchange.efficiency", &BoundRuntime::exchangeEfficiency},
    {"attention.tile", nullptr, false, maxTile, &BoundRuntime::attentionTile},
    {"reserve", &BoundRuntime::reserve, true},
};

/// Entries of the allocator are bytes, and there are all of them or none.
struct AllocatorEntry {
  llvm::StringLiteral name;
  int64_t BoundAllocator::*bytes;
  /// Of an entry before it: no bytes are fewer.
  int64_t BoundAllocator::*least = nullptr;
  llvm::StringLiteral leastName = "";
};
constexpr int64_t maxSegment = int64_t(1) << 40;
constexpr AllocatorEntry allocatorEntries[] = {
    {"allocator.round", &BoundAllocator::round},
    {"allocator.small", &BoundAllocator::small, &BoundAllocator::round, "allocator.round"},
    {"allocator.small_segment", &BoundAllocator::smallSegment, &BoundAllocator::small, "allocator.small"},
    {"allocator.large", &BoundAllocator::large, &BoundAllocator::small, "allocator.small"},
    {"allocator.large_segment", &BoundAllocator::largeSegment, &BoundAllocator::large, "allocator.large"},
    {"allocator.segment_round", &BoundAllocator::segmentRound, &BoundAllocator::round, "allocator.round"},
    {"allocator.unsplit", &BoundAllocator::unsplit},
};

/// Evaluates the entries of the allocator. False after a report.
bool bindAllocator(Evaluator &evaluator, const NamedEntries &entries, const Environment &env, SMRange range,
                   DiagnosticEngine &diags, BoundRuntime &runtime);

/// The type in which the kernel of a product multiplies: a word, one of those of `flops.T`.
constexpr llvm::StringLiteral kernelTypeEntry = "type";

/// What `at` and `resident` say of ops.
struct KernelEntry {
  llvm::StringLiteral name;
  Size BoundKernels::*formula; ///< Null: a number, the speed, or a name.
  bool isTime = false;
  bool isOfProducts = false;                  ///< Also ops that are no element-wise kernels have it.
  StringRef BoundKernels::*word = nullptr;    ///< The name of an operand or of a module's instance.
  llvm::StringLiteral example = "";           ///< Of a name.
  bool isOfResidents = false, isOfOps = true; ///< Where it may stand.
};
/// `per = shape`: one resident for each shape of weights; `per = stage`: one for all ops of a rank.
constexpr llvm::StringLiteral residentCountEntry = "per", perShape = "shape", perStage = "stage";
constexpr KernelEntry kernelEntries[] = {
    {"bytes", &BoundKernels::bytes, false, false, nullptr, "", true},
    {"backward bytes", &BoundKernels::backwardBytes, false, false, nullptr, "", true},
    {"beside bytes", &BoundKernels::besideBytes, false, true},
    {"backward beside bytes", &BoundKernels::backwardBesideBytes, false, true},
    {"ring bytes", &BoundKernels::ringBytes, false, true},
    {"backward ring bytes", &BoundKernels::backwardRingBytes, false, true},
    {"floor", &BoundKernels::floor, true},
    {"backward floor", &BoundKernels::backwardFloor, true},
    {"host", &BoundKernels::host, true, true},
    {"backward host", &BoundKernels::backwardHost, true, true},
    {"speed", nullptr, false, true},
    {kernelTypeEntry, nullptr, false, true},
    {"keep bytes", &BoundKernels::keepBytes, false, true},
    {"overwrite", nullptr, false, true, &BoundKernels::overwritten, "overwrite = x"},
    {"backward overwrite", nullptr, false, true, &BoundKernels::backwardOverwritten, "backward overwrite = x"},
    {"drop", nullptr, false, true, &BoundKernels::dropped, "drop = x"},
    {"hold", nullptr, false, true, &BoundKernels::heldUntil, "hold = moe"},
    {"hold bytes", &BoundKernels::holdBytes, false, true},
    {"place", nullptr, false, true, &BoundKernels::placed, "place = x", true, false},
    {residentCountEntry, nullptr, false, true, nullptr, "", true, false},
};

/// Classes of ops; an optimizer's kernels are the updates of parameters.
constexpr llvm::StringLiteral kernelClasses[] = {"elementwise", "contraction", "attention", "optimizer"};
constexpr llvm::StringLiteral elementwiseClass = "elementwise", optimizerClass = "optimizer";
/// Messages to other stages, of residents only.
constexpr llvm::StringLiteral sendClass = "send";

/// Evaluates `at` or `fuse`. False after a report.
bool bindKernels(Evaluator &evaluator, const ast::KernelStmt &stmt, const ast::File &file, BoundRuntime &runtime);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_RUNTIMEWORDS_H
