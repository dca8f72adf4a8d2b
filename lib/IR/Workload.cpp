//===- Workload.cpp - several graphs, each on a mesh of its own -----------===//
#include "stage/IR/Workload.h"
#include "TextParser.h"
#include "TextWriter.h"
#include "stage/IR/Diagnostics.h"
#include "stage/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include <deque>
#include <set>

using namespace stage;

Value *Workload::getOutput(const Transfer &transfer) const {
  return parts[transfer.from]->getForward().getTerminator()->getOperand(transfer.output);
}

std::string Workload::describe(const Transfer &transfer) const {
  return "'" + stage::describe(*getOutput(transfer)) + "' of " + parts[transfer.from]->name + " to '" +
         stage::describe(*getInput(transfer)) + "' of " + parts[transfer.to]->name;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
/// `transfer Encoder %y to Decoder %x;`, behind all graphs.
class WorkloadParser {
public:
  WorkloadParser(SizeContext &sizes, DiagnosticEngine &diags, llvm::StringRef text)
      : sizes(sizes), diags(diags), rest(text) {}

  std::unique_ptr<Workload> run() {
    do {
      auto graph = std::make_unique<Graph>(sizes);
      parsers.emplace_back(*graph, diags, rest);
      if (!parsers.back().parseGraph())
        return nullptr;
      rest = parsers.back().getRest();
      workload->parts.push_back(std::move(graph));
    } while (parsers.back().isAt("graph"));
    TextParser &parser = parsers.back();
    while (parser.isAt("transfer")) {
      TextParser::TransferEnd from, to;
      if (!parser.parseTransfer(from, to))
        return nullptr;
      add(from, to);
    }
    return parser.parseEnd() ? std::move(workload) : nullptr;
  }

private:
  /// The part and its value that an end of a transfer means; null after an error.
  std::pair<unsigned, Value *> find(const TextParser::TransferEnd &end) {
    for (unsigned part = 0; part < parsers.size(); ++part)
      if (workload->parts[part]->name == end.part) {
        Value *value = parsers[part].findValue(end.value);
        if (!value)
          diags.report(end.value.getLoc(), diag::IRNoValueOfPart) << end.part << end.value.text;
        return {part, value};
      }
    diags.report(end.name.getLoc(), diag::IRUnknownPart) << end.part;
    return {0, nullptr};
  }

  void add(const TextParser::TransferEnd &from, const TextParser::TransferEnd &to) {
    auto [fromPart, output] = find(from);
    auto [toPart, input] = find(to);
    if (!output || !input)
      return;
    auto fail = [&](const Token &at, llvm::StringRef why) {
      diags.report(at.getLoc(), diag::IRBadTransfer) << "'" + stage::describe(*output) + "' of " + from.part + " to '" +
                                                            stage::describe(*input) + "' of " + to.part
                                                     << why;
    };
    Op *end = workload->parts[fromPart]->getForward().getTerminator();
    llvm::ArrayRef<Value *> outputs =
        end && end->kind == OpKind::Return ? end->getOperands() : llvm::ArrayRef<Value *>();
    unsigned number = llvm::find(outputs, output) - outputs.begin();
    if (number == outputs.size())
      return fail(from.value, "the first is none of the values that its part returns");
    if (input->isArgument() || input->getOp()->kind != OpKind::Input || getLoop(input))
      return fail(to.value, "the second is no input of its part that stands outside of repeats");
    if (input->getOp()->isTransferred)
      return fail(to.value, "the second is the end of another transfer");
    input->getOp()->isTransferred = true;
    workload->transfers.push_back({fromPart, toPart, number, input->getOp(), from.name.getLoc()});
  }

  SizeContext &sizes;
  DiagnosticEngine &diags;
  llvm::StringRef rest;
  std::unique_ptr<Workload> workload = std::make_unique<Workload>();
  std::deque<TextParser> parsers; ///< Per part: they know the names of values.
};
} // namespace

std::unique_ptr<Workload> stage::parseWorkload(SizeContext &sizes, DiagnosticEngine &diags, unsigned bufferId) {
  unsigned errorsBefore = diags.getNumErrors();
  llvm::StringRef text = diags.getSources().getMemoryBuffer(bufferId)->getBuffer();
  std::unique_ptr<Workload> workload = WorkloadParser(sizes, diags, text).run();
  return diags.getNumErrors() == errorsBefore ? std::move(workload) : nullptr;
}

void stage::print(llvm::raw_ostream &os, const Workload &workload) {
  std::vector<ValueNames> names;
  for (auto &part : workload.parts) {
    os << (part == workload.parts.front() ? "" : "\n");
    print(os, *part);
    names.emplace_back(*part);
  }
  if (!workload.transfers.empty())
    os << '\n';
  for (const Transfer &transfer : workload.transfers) {
    os << "transfer ";
    printName(os, workload.parts[transfer.from]->name);
    os << " %" << names[transfer.from].get(workload.getOutput(transfer)) << " to ";
    printName(os, workload.parts[transfer.to]->name);
    os << " %" << names[transfer.to].get(workload.getInput(transfer)) << ";\n";
  }
}

//===----------------------------------------------------------------------===//
// V13
//===----------------------------------------------------------------------===//

std::vector<unsigned> stage::orderParts(const Workload &workload) {
  std::vector<unsigned> awaited(workload.parts.size(), 0), order;
  std::vector<std::vector<unsigned>> receivers(workload.parts.size());
  for (const Transfer &transfer : workload.transfers) {
    ++awaited[transfer.to];
    receivers[transfer.from].push_back(transfer.to);
  }
  std::set<unsigned> ready;
  for (unsigned part = 0; part < awaited.size(); ++part)
    if (!awaited[part])
      ready.insert(part);
  while (!ready.empty()) {
    unsigned part = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(part);
    for (unsigned receiver : receivers[part])
      if (!--awaited[receiver])
        ready.insert(receiver);
  }
  return order;
}

bool stage::verifyTransferSizes(const Workload &workload, DiagnosticEngine &diags) {
  bool isGood = true;
  for (const Transfer &transfer : workload.transfers) {
    const Value *output = workload.getOutput(transfer), *input = workload.getInput(transfer);
    for (unsigned d = 0; d < output->type.getNumDims() && d < input->type.getNumDims(); ++d) {
      Size left = output->type.shape[d].size, right = input->type.shape[d].size;
      SizeValue leaves = evaluateCount(left, workload.parts[transfer.from]->binding);
      SizeValue arrives = evaluateCount(right, workload.parts[transfer.to]->binding);
      if (!leaves || !arrives || leaves.value == arrives.value) // what has no value is refused where sizes are checked
        continue;
      diags.report(transfer.loc, diag::IRTransferSize) << workload.describe(transfer) << int64_t(d) << left.str()
                                                       << leaves.value.str() << right.str() << arrives.value.str();
      isGood = false;
    }
  }
  return isGood;
}

static bool verifyTransfer(const Workload &workload, const Transfer &transfer, DiagnosticEngine &diags) {
  const Value *output = workload.getOutput(transfer), *input = workload.getInput(transfer);
  const Graph &from = *workload.parts[transfer.from], &to = *workload.parts[transfer.to];
  auto fail = [&](const llvm::Twine &why) {
    diags.report(transfer.loc, diag::IRBadTransfer) << workload.describe(transfer) << why;
    return false;
  };
  if (transfer.from == transfer.to)
    return fail("both are of the same part");
  if (output->type.dtype != input->type.dtype)
    return fail("the first is " + getName(output->type.dtype) + ", the second " + getName(input->type.dtype));
  if (output->type.getNumDims() != input->type.getNumDims())
    return fail("the first has " + llvm::Twine(output->type.getNumDims()) + " dims, the second " +
                llvm::Twine(input->type.getNumDims()));
  if (const Op *maker = output->getOp(); !maker || isState(maker->kind) || maker->kind == OpKind::Input ||
                                         maker->kind == OpKind::Constant)
    return fail("the first is made by no op");
  if (isOnHost(*output) || isOnHost(*input))
    return fail("what is on the host is not sent");
  if (from.microbatches != to.microbatches)
    return fail("the parts have " + llvm::Twine(from.microbatches) + " and " + llvm::Twine(to.microbatches) +
                " microbatches per step");
  return true;
}

bool stage::verify(Workload &workload, DiagnosticEngine &diags) {
  unsigned errorsBefore = diags.getNumErrors();
  llvm::StringSet<> names;
  int64_t ranks = 0;
  for (auto &part : workload.parts) {
    verify(*part, diags);
    if (!names.insert(part->name).second)
      diags.report(part->loc, diag::IRRedefinition) << part->name;
    ranks += part->mesh.getNumRanks();
    if (ranks > TextParser::maxRanks) {
      diags.report(part->loc, diag::IRTooManyRanksOfParts) << part->name << TextParser::maxRanks;
      ranks = 0;
    }
  }
  for (const Transfer &transfer : workload.transfers)
    verifyTransfer(workload, transfer, diags);
  if (diags.getNumErrors() > errorsBefore)
    return false;
  verifyTransferSizes(workload, diags);
  std::vector<unsigned> order = orderParts(workload);
  for (const Transfer &transfer : workload.transfers)
    if (order.size() < workload.parts.size() && !llvm::is_contained(order, transfer.to) &&
        !llvm::is_contained(order, transfer.from)) {
      diags.report(transfer.loc, diag::IRBadTransfer)
          << workload.describe(transfer) << "both parts wait for each other, directly or through others";
      break;
    }
  return diags.getNumErrors() == errorsBefore;
}
