//===- Findings.cpp - where a program goes wrong --------------------------===//
#include "Findings.h"
#include "stage/IR/text/Text.h"
#include "stage/Interp/Diagnostics.h"
#include <cmath>

using namespace stage;
using namespace stage::interp;

Findings::Findings(const Graph &graph) : graph(graph) {
  unsigned number = 0, outer = 0;
  auto visit = [&](auto &self, const Block &block) -> void {
    for (auto &argument : block.getArguments()) {
      order[argument.get()] = number++;
      outerOrder[argument.get()] = outer;
    }
    for (auto &op : block) {
      outer += !block.getParent();
      for (auto &body : op->bodies)
        self(self, *body);
      for (auto &result : op->getResults()) {
        order[result.get()] = number++;
        outerOrder[result.get()] = outer;
      }
    }
  };
  for (const Block &phase : graph.getPhases())
    visit(visit, phase);
}

std::tuple<unsigned, unsigned, uint64_t, unsigned> Findings::getOrder(const Instance &instance) const {
  const Op *loop = getLoop(instance.value);
  uint64_t iteration = loop && loop->reverse ? ~instance.iteration : loop ? instance.iteration : 0;
  bool isStep = isOncePerStep(instance.value->getBlock()->getPhase());
  return {isStep ? ~0u : instance.microbatch, outerOrder.lookup(instance.value), iteration,
          order.lookup(instance.value)};
}

std::string stage::interp::describePlace(const Value *value, uint64_t iteration, unsigned microbatch) {
  std::string text;
  if (getLoop(value))
    text = "iteration " + std::to_string(iteration) + ", ";
  return text + "microbatch " + std::to_string(microbatch);
}

void Findings::compare(const Instance &instance, const Tensor &piece, const Tensor &whole, double rounding,
                       int64_t rank) {
  compared.insert(instance);
  std::optional<Tensor> expected = piece.isFlat ? extractFlat(whole, piece.dims.front()) : extract(whole, piece.dims);
  Difference *difference = nullptr;
  double largest = getLargest(whole);
  forEachElement(piece.dims, [&](int64_t i, llvm::ArrayRef<int64_t> local) {
    double want = expected ? expected->data[i] : NAN;
    if (Deviation deviation(piece.data[i], want, rounding, largest); deviation.isAccepted()) {
      if (deviation.isOfRounding) {
        ofRounding.insert(instance);
        return;
      }
      maxError = std::max(maxError, deviation.error);
      maxAccepted = std::max(maxAccepted, deviation.accepted);
      return;
    }
    if (difference)
      return;
    difference = &differing[instance];
    if (difference->ranks.empty()) {
      for (unsigned d = 0; d < local.size(); ++d)
        difference->position.push_back(piece.dims[d][local[d]]);
      difference->found = piece.data[i];
      difference->expected = want;
    }
    difference->ranks.push_back(rank);
  });
}

void Findings::fail(Fault what, int64_t rank, unsigned microbatch, const Frame &frame) {
  if (fault)
    return;
  uint64_t iteration = what.value ? getIteration(what.value, frame) : 0;
  faultPlace = what.value ? describePlace(what.value, iteration, microbatch) : "";
  fault = std::move(what);
  faultRank = rank;
}

static std::string describeRanks(std::vector<int64_t> ranks) {
  llvm::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.size() == 1 && ranks.front() < 0)
    return "one device";
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < 8; ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > 8 ? text + ", ..." : text;
}

std::string stage::interp::describeMaker(const Graph &graph, const Value *value) {
  const Op *op = value->getOp();
  if (!op && !getLoop(value))
    return "a recv of pieces";
  if (!op)
    return "an argument of repeat " + value->getBlock()->getParent()->name;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << (op->def ? llvm::StringRef(op->def->name) : getName(op->kind));
  if (op->kind == OpKind::Repeat)
    os << " " << op->name;
  if (!op->axes.empty()) {
    os << " over ";
    printAxes(os, graph.mesh, op->axes);
  }
  return os.str();
}

static std::string describeSharding(const Graph &graph, const Value *value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (value->sharding.dims.size() == value->type.getNumDims())
    print(os, graph, value->sharding);
  return os.str().empty() ? "on every rank" : "with sharding " + os.str();
}

/// The gradient of an op does not follow from the values that it saves.
void Findings::reportUnsaved(DiagnosticEngine &diags) const {
  const Op &op = *fault->op;
  const OpDef &def = *op.def->vjpOf;
  llvm::SmallVector<unsigned, 4> operands, results;
  listSaved(def, operands, results);
  std::string saved, unknown;
  for (unsigned i : operands)
    saved += (saved.empty() ? "'" : ", '") + def.operands[i].name + "'";
  for (unsigned i : results) {
    saved += (saved.empty() ? "'" : ", '") + def.results[i].name + "'";
    if (!def.results[i].formula)
      unknown = def.results[i].name;
  }
  const std::string &name = def.operands[*fault->unsaved].name;
  SMLoc loc = def.loc.isValid() ? def.loc : op.loc;
  DiagnosticBuilder error = diags.report(loc, diag::ProofUnsaved)
                            << def.name << name << (saved.empty() ? "nothing" : saved);
  if (!unknown.empty())
    error.note(loc, diag::ProofNoFormula) << unknown;
  if (def.loc.isValid())
    error.note(op.loc, diag::ProofUsedHere);
}

void Findings::report(DiagnosticEngine &diags) const {
  // What differs was computed before the fault, and is likely to be why.
  if (fault && fault->unsaved && differing.empty())
    return reportUnsaved(diags);
  if (fault && differing.empty()) {
    const Value *value = fault->value;
    DiagnosticBuilder error =
        diags.report(fault->op ? fault->op->loc : graph.loc, diag::ProofCannotRun)
        << (fault->op ? (fault->op->def ? llvm::StringRef(fault->op->def->name) : getName(fault->op->kind)) : "?")
        << describeRanks({faultRank}) << (value ? describe(*value) + " (" + faultPlace + ")" : "it") << fault->text;
    if (value)
      error.note(value->loc, diag::ProofMadeBy)
          << describe(*value) << describeMaker(graph, value) << describeSharding(graph, value);
    return;
  }
  const std::pair<const Instance, Difference> *first = nullptr;
  for (auto &entry : differing)
    if (!first || getOrder(entry.first) < getOrder(first->first))
      first = &entry;
  if (!first)
    return;
  const Value *value = first->first.value;
  std::string position;
  for (int64_t p : first->second.position)
    position += (position.empty() ? "" : ", ") + std::to_string(p);
  char found[32], expected[32];
  snprintf(found, sizeof found, "%.9g", first->second.found);
  snprintf(expected, sizeof expected, "%.9g", first->second.expected);
  DiagnosticBuilder error = diags.report(value->getOp() ? value->getOp()->loc : value->loc, diag::ProofDiffers)
                            << describe(*value) << describePlace(value, first->first.iteration, first->first.microbatch)
                            << describeRanks(first->second.ranks) << position << found << expected;
  error.note(value->loc, diag::ProofMadeBy)
      << describe(*value) << describeMaker(graph, value) << describeSharding(graph, value);
  if (const Op *op = value->getOp())
    for (const Value *operand : op->getOperands())
      error.note(operand->loc, diag::ProofOperand)
          << describe(*operand) << describeMaker(graph, operand) << describeSharding(graph, operand);
  if (differing.size() > 1)
    error.note(SMLoc(), diag::ProofMoreDiffer) << int64_t(differing.size() - 1);
}
