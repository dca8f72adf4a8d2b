//===- Rule.h - a rule of a strategy ---------------------------*- C++ -*-===//
//
//   rule 0 shard (KV, G) over tp;
//   rule 1 at "layers[*].{x, y}" shard S over tp;
//   rule 2 at "**.attention()" [..., e] shard e over cp mirrored;
//   rule 3 keep gathered over tp;
//   rule 4 partition parameters over dp keep units ("layers[*]", "embed") prefetch 1;
//   rule 5 reduce gradients over dp bucket 1024 in bf16 per microbatch beside backward;
//   rule 6 overlap communication over (dp, cp);
//   rule 7 overlap products over tp;
//   rule 8 at "layers[*]" recompute whole cases (1);
//   rule 9 at "layers[*].mlp" offload after 1 cases (1);
//   rule 10 offload optimizer;
//   rule 11 at "**.linear()" quantize as f8 by (1, 128) with f32;
//   rule 12 shard H? over tp;
//   rule 13 added 1 from (0, 2) shard F over tp;     the third call of the first one of a part that the job adds
//
// Rules stand in the graph IR, so that apply-strategy can be tested alone.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_RULE_H
#define STAGE_IR_GRAPH_RULE_H

#include "stage/IR/algebra/Types.h"
#include "stage/IR/graph/PathPattern.h"
#include "stage/Support/RuleOrigin.h"

namespace stage {

enum class RuleKind : uint8_t {
#define RULE(id, text) id,
#include "stage/IR/graph/Rules.def"
};
/// `shard`, `replicate`, `keep gathered`, `partition optimizer`, ...
llvm::StringRef getName(RuleKind kind);

struct Rule {
  RuleKind kind = RuleKind::Shard;
  /// What it is about; absent: everything.
  std::optional<PathPattern> pattern;
  /// `at P: [..., i, o]: ...` names the dims of what it matches, by position, from the end after `...`.
  struct DimNames {
    llvm::SmallVector<std::string, 4> names;
    bool hasEllipsis = false;
    bool empty() const { return names.empty() && !hasEllipsis; }
  } dimNames;
  /// Shard: one or more names that share the axes, first come first.
  llvm::SmallVector<std::string, 2> dims;
  /// Of these, those that a model may lack: `H?`, or what stands under `has(H)`.
  llvm::SmallVector<std::string, 0> lackable;
  AxisList axes; ///< With their layouts; empty: `()`, whole.
  /// `order ...`: the layouts of the axes are said. Without it they are those that a rule for the dim alone gives them.
  bool saysLayout = false;
  /// PartitionParameters: what forward gathers is kept for backward.
  bool keeps = false;
  /// PartitionParameters: backward gathers all that forward has gathered. Recompute: gradients gather it once more.
  bool gathersAll = false;
  /// Partition...: what is moved at once, parameters below the places that one of these means, and how many units a
  /// gather runs ahead.
  std::vector<PathPattern> units;
  unsigned prefetch = 0;
  /// ReduceGradients: what is reduced at once has so many bytes or more, as far as gradients go; 0: each gradient by
  /// itself.
  int64_t bucketBytes = 0;
  /// ReduceGradients: the element type in which gradients are reduced; absent: the one that they have.
  std::optional<DType> type;
  bool perMicrobatch = false;
  /// Quantize, whose `type` is absent for `none`: (m, n), m elements along what a product does not add up and n along
  /// what it does, have a scale of this type; empty: one scale for all of them.
  llvm::SmallVector<uint32_t, 2> blocks;
  DType scales = DType::F32;
  /// Quantize: state is dequantized by an op before products read it.
  bool dequantizes = false;
  /// Beside backward, on a stream of its own; or behind it; or on the stream of all communication.
  enum class Overlap : uint8_t { None, Beside, Behind } overlap = Overlap::None;
  bool partitionsState() const {
    return kind == RuleKind::PartitionOptimizer || kind == RuleKind::PartitionGradients ||
           kind == RuleKind::PartitionParameters;
  }
  /// Says what becomes of what forward keeps for backward.
  bool isOfKept() const { return kind == RuleKind::Recompute || kind == RuleKind::Offload; }
  /// Says that state is on the host.
  bool offloadsState() const { return kind == RuleKind::OffloadOptimizer || kind == RuleKind::OffloadParameters; }
  /// Says nothing of shardings: what is done with parameters and their gradients, or when.
  bool isOfState() const {
    return partitionsState() || offloadsState() || kind == RuleKind::ReduceGradients || isOfOverlap();
  }
  /// Says what runs beside what.
  bool isOfOverlap() const {
    return kind == RuleKind::OverlapCommunication || kind == RuleKind::OverlapProducts ||
           kind == RuleKind::OverlapNothing || kind == RuleKind::OverlapGradients;
  }
  /// OverlapCommunication: groups over other axes have another stream each, instead of one for all of them.
  bool isApart = false;
  /// Recompute: as a whole; what is used outside of it is kept. PartitionOptimizer: tied gradients are summed whole.
  bool isWhole = false;
  /// Offload: beside how many layers a copy may run.
  unsigned depth = 0;
  /// Recompute, Offload and Quantize: of these cases of a repeat only (IterationCases); absent: of all.
  std::optional<std::vector<unsigned>> cases;
  SMLoc loc;
  RuleOrigin origin;
  /// Its statement is what other rules have left of a longer one: it need not mean something by itself.
  bool isTrimmed = false;
  /// Where another strategy than the job's says it: the calls that lead there, for messages, and the place of the last.
  std::string calls;
  SMLoc callLoc;
  unsigned statement = 0; ///< Rules of one `shard a over x, b over y;` share a number: one must match.
};

} // namespace stage

#endif // STAGE_IR_GRAPH_RULE_H
