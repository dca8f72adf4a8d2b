//===- PrintProgram.cpp - the program IR as text --------------------------===//
#include "stage/IR/graph/Channel.h"
#include "stage/IR/graph/Program.h"
#include "stage/IR/text/Text.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
class ProgramPrinter {
public:
  ProgramPrinter(llvm::raw_ostream &os, const Program &program) : os(os), program(program), names(*program.graph) {}

  void print() {
    os << "program " << program.graph->name << " {\n";
    os << "  stages " << program.numStages << ", chunks " << program.numChunks << ", microbatches "
       << program.microbatches << ";\n";
    for (const StageProgram &stage : program.stages)
      printStage(stage);
    os << "}\n";
  }

private:
  void printStage(const StageProgram &stage) {
    os << "  stage " << stage.stage << " {\n";
    for (const UnitTemplate &unit : stage.templates) {
      os << "    " << getName(unit.kind);
      if (program.numChunks > 1 && !isOncePerStep(unit.kind))
        os << " chunk " << unit.chunk;
      printItems(unit.items);
    }
    os << "    order";
    llvm::StringRef separator = " ";
    for (const Unit &unit : stage.units)
      if (!isOncePerStep(unit.kind)) {
        os << separator << program.getUnitName(unit) << toString(program.graph->pipeline.environments[unit.environment])
           << (unit.feeder ? "<" + std::to_string(*unit.feeder) : "");
        separator = getSeparator(unit);
      }
    os << ";\n  }\n";
  }

  void printItems(const std::vector<ProgramItem> &items) {
    os << " {\n";
    for (const ProgramItem &item : items) {
      os << "      ";
      printItem(item);
      os << ";\n";
    }
    os << "    }\n";
  }

  void printItem(const ProgramItem &item) {
    switch (item.kind) {
    case ProgramItem::Kind::Op:
      return printOp(*item.op, item.getGathered());
    case ProgramItem::Kind::Loop:
      os << "loop " << item.op->name << (item.op->reverse ? " reverse" : "") << " [" << item.begin << ", " << item.end
         << ")";
      return;
    case ProgramItem::Kind::Recv:
    case ProgramItem::Kind::Send:
      bool isRecv = item.kind == ProgramItem::Kind::Recv;
      os << (item.isLocal ? isRecv ? "take " : "hand " : isRecv ? "recv " : "send ");
      llvm::ArrayRef<Value *> values = item.values;
      llvm::interleaveComma(item.channel ? values.take_front() : values, os,
                            [&](const Value *value) { os << '%' << names.get(value); });
      if (item.values.empty())
        os << "nothing";
      if (item.channel) {
        const Exchange &exchange = *item.channel->exchange;
        const Graph &other = *(isRecv ? exchange.from : exchange.to)->graph;
        unsigned stage = isRecv ? exchange.fromStage : exchange.toStage;
        if (item.channel->iteration >= 0)
          os << " @" << item.channel->iteration;
        os << (isRecv ? " from " : " to ") << "part " << other.name << " stage " << stage;
        if (values.size() > 1)
          os << " in " << values.size() << " messages";
        return;
      }
      auto [stage, chunk] = program.virtualStages[item.peer];
      os << (isRecv ? " from" : " to");
      if (!item.isLocal)
        os << " stage " << stage;
      if (program.numChunks > 1)
        os << " chunk " << chunk;
      if (item.isBlocking)
        os << " blocking";
      for (auto [constant, value] : item.constants) {
        os << ", %" << names.get(value) << " = ";
        printNumber(os, constant->getOp()->number);
      }
    }
  }

  /// `gathered`: the name under which the unit knows the result, if it is another one.
  void printOp(const Op &op, const Value *gathered) {
    if (gathered) {
      os << '%' << names.get(gathered) << " = ";
    } else if (op.getNumResults()) {
      llvm::interleaveComma(op.getResults(), os, [&](auto &result) { os << '%' << names.get(result.get()); });
      os << " = ";
    }
    os << (op.def ? llvm::StringRef(op.def->name) : getName(op.kind));
    os << '(';
    llvm::interleaveComma(op.getOperands(), os, [&](const Value *operand) { os << '%' << names.get(operand); });
    os << ')';
    if (isCommunication(op.kind) || (op.kind == OpKind::Slice && op.flat)) {
      os << " over ";
      printAxes(os, program.graph->mesh, op.axes);
    }
    if (op.kind == OpKind::Permute)
      os << " by " << op.shift;
    printStages(os, op);
  }

  llvm::raw_ostream &os;
  const Program &program;
  ValueNames names;
};
} // namespace

void stage::print(llvm::raw_ostream &os, const Program &program) { ProgramPrinter(os, program).print(); }
