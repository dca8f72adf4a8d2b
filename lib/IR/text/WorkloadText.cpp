//===- WorkloadText.cpp - several graphs and their transfers as text ------===//
#include "TextParser.h"
#include "TextWriter.h"
#include "stage/IR/Diagnostics.h"
#include "stage/IR/graph/Workload.h"
#include <deque>

using namespace stage;

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
