//===- PrintOpDef.cpp - operators as index notation -----------------------===//
#include "TextWriter.h"
#include "stage/IR/algebra/OpDef.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

namespace {
/// Binding strength, loosest first: or, and, comparison, sum, product, unary, primary.
enum Strength { LooseOr, LooseAnd, Comparison, Sum, Product, Unary, Primary };

class FormulaPrinter {
public:
  FormulaPrinter(llvm::raw_ostream &os, const OpDef &def) : os(os), def(def) {}

  void print(const Formula *f, int context = LooseOr) {
    int strength = strengthOf(f);
    bool parenthesize = strength < context;
    if (parenthesize)
      os << '(';
    printBare(f, strength);
    if (parenthesize)
      os << ')';
  }

  void printIndices(llvm::ArrayRef<unsigned> indices) {
    os << '[';
    llvm::interleaveComma(indices, os, [&](unsigned index) { os << def.indices[index].name; });
    os << ']';
  }

private:
  static int strengthOf(const Formula *f) {
    switch (f->kind) {
    case Formula::Kind::Or:
      return LooseOr;
    case Formula::Kind::And:
      return LooseAnd;
    case Formula::Kind::Less:
    case Formula::Kind::LessEqual:
    case Formula::Kind::Equal:
      return Comparison;
    case Formula::Kind::Add:
    case Formula::Kind::Sub:
      return Sum;
    case Formula::Kind::Mul:
    case Formula::Kind::Div:
      return Product;
    case Formula::Kind::Negate:
    case Formula::Kind::Not:
      return Unary;
    case Formula::Kind::Number:
      return f->number < 0 ? Unary : Primary;
    default:
      return Primary;
    }
  }

  void printBinary(const Formula *f, llvm::StringRef symbol, int left, int right) {
    print(f->children[0], left);
    os << symbol;
    print(f->children[1], right);
  }

  void printBare(const Formula *f, int strength) {
    switch (f->kind) {
    case Formula::Kind::Number:
      printNumber(os, f->number);
      return;
    case Formula::Kind::SizeOf:
      os << "size(" << f->size << ')';
      return;
    case Formula::Kind::Index:
      os << def.indices[f->index].name;
      return;
    case Formula::Kind::Element:
      os << def.operands[f->operand].name << '[';
      llvm::interleaveComma(f->children, os, [&](const Formula *subscript) { print(subscript); });
      os << ']';
      return;
    case Formula::Kind::Let:
      os << def.lets[f->operand].first;
      return;
    case Formula::Kind::Reduce:
      os << (f->isMean ? llvm::StringRef("mean") : getName(f->reduce));
      printIndices(f->indices);
      os << '(';
      print(f->children[0]);
      os << ')';
      return;
    case Formula::Kind::Call:
    case Formula::Kind::Select:
    case Formula::Kind::Random:
      os << (f->kind == Formula::Kind::Call     ? getName(f->function)
             : f->kind == Formula::Kind::Select ? llvm::StringRef("where")
                                                : llvm::StringRef("random"));
      os << '(';
      llvm::interleaveComma(f->children, os, [&](const Formula *child) { print(child); });
      os << ')';
      return;
    case Formula::Kind::Negate:
      os << '-';
      print(f->children[0], Unary);
      return;
    case Formula::Kind::Not:
      os << '!';
      print(f->children[0], Unary);
      return;
    case Formula::Kind::Add:
      return printBinary(f, " + ", strength, strength);
    case Formula::Kind::Sub:
      return printBinary(f, " - ", strength, strength + 1);
    case Formula::Kind::Mul:
      return printBinary(f, " * ", strength, strength + 1);
    case Formula::Kind::Div:
      return printBinary(f, " / ", strength, strength + 1);
    case Formula::Kind::Less:
      return printBinary(f, " < ", strength + 1, strength + 1);
    case Formula::Kind::LessEqual:
      return printBinary(f, " <= ", strength + 1, strength + 1);
    case Formula::Kind::Equal:
      return printBinary(f, " == ", strength + 1, strength + 1);
    case Formula::Kind::And:
      return printBinary(f, " && ", strength, strength + 1);
    case Formula::Kind::Or:
      return printBinary(f, " || ", strength, strength + 1);
    }
  }

  llvm::raw_ostream &os;
  const OpDef &def;
};
} // namespace

void stage::print(llvm::raw_ostream &os, const OpDef &def, const Formula &formula) {
  FormulaPrinter(os, def).print(&formula);
}

/// True if the indices are numbered in the order in which the operands and results first name them: what a reader
/// does by itself. Else they are printed: `op f[t, s](x: [s, t])`.
static bool isFirstUseOrder(const OpDef &def) {
  llvm::SmallVector<unsigned, 8> order;
  auto visit = [&](llvm::ArrayRef<unsigned> indices) {
    for (unsigned index : indices) {
      for (unsigned member : def.indices[index].members)
        if (!llvm::is_contained(order, member))
          order.push_back(member);
      if (!llvm::is_contained(order, index))
        order.push_back(index);
    }
  };
  for (const OperandInfo &operand : def.operands)
    visit(operand.indices);
  for (const ResultInfo &result : def.results)
    visit(result.indices);
  return order.size() == def.indices.size() && llvm::is_sorted(order);
}

/// The braces of an op: everything that is declared and not derived.
static void printBody(llvm::raw_ostream &os, const OpDef &def, FormulaPrinter &formulas) {
  auto name = [&](unsigned index) { return def.indices[index].name; };
  auto list = [&](llvm::StringRef word, auto &&select) {
    llvm::SmallVector<std::string, 4> names;
    for (const IndexInfo &index : def.indices)
      if (select(index))
        names.push_back(index.name);
    if (!names.empty())
      os << "  " << word << ' ' << llvm::join(names, ", ") << ";\n";
  };
  for (auto &[letName, formula] : def.lets) {
    os << "  let " << letName << " = ";
    formulas.print(formula);
    os << ";\n";
  }
  if (!def.part.kernel.empty()) {
    os << "  " << (def.part.isAddend ? "addend " : "part ") << def.part.number << " of ";
    printName(os, def.part.kernel);
    os << ";\n";
  }
  if (def.opaque)
    os << "  opaque;\n";
  if (def.stopGradient)
    os << "  stop_gradient;\n";
  list("whole", [](const IndexInfo &index) { return index.whole; });
  list("fold", [](const IndexInfo &index) { return index.fold && !index.by; });
  for (const IndexInfo &index : def.indices)
    if (index.by)
      os << "  fold " << index.name << " by " << name(*index.by) << ";\n";
  if (def.mask) {
    os << "  mask " << getName(def.mask->kind) << '(' << name(def.mask->rows) << ", " << name(def.mask->columns);
    if (def.mask->amount)
      os << ", " << def.mask->amount;
    os << ");\n";
  }
  if (def.routing) {
    os << "  routes ";
    llvm::interleaveComma(def.routing->tokens, os, [&](unsigned index) { os << name(index); });
    os << " -> " << name(def.routing->target) << ", " << name(def.routing->slot) << " by "
       << def.operands[def.routing->operand].name << (def.routing->isOnce ? " once" : "") << ";\n";
  }
  if (def.declaredClass)
    os << "  class = " << getName(*def.declaredClass) << ";\n";
  if (def.flops)
    os << "  flops = " << def.flops << ";\n";
  if (def.bytes)
    os << "  bytes = " << def.bytes << ";\n";
  if (def.backwardFlops)
    os << "  backward flops = " << def.backwardFlops << ";\n";
  if (def.backwardRecompute)
    os << "  recomputing = " << def.backwardRecompute << ";\n";
  if (def.declaresSaves) {
    llvm::SmallVector<std::string, 4> saved;
    for (unsigned operand : def.savedOperands)
      saved.push_back(def.operands[operand].name);
    for (unsigned result : def.savedResults)
      if (!def.results[result].extra)
        saved.push_back(def.results[result].name);
    os << "  saves " << (saved.empty() ? "nothing" : llvm::join(saved, ", ")) << ";\n";
  }
}

void stage::print(llvm::raw_ostream &os, const OpDef &def) {
  FormulaPrinter formulas(os, def);
  os << "op ";
  printName(os, def.name);
  if (!isFirstUseOrder(def)) {
    os << '[';
    llvm::interleaveComma(def.indices, os, [&](const IndexInfo &index) { os << index.name; });
    os << ']';
  }
  os << '(';
  llvm::interleaveComma(def.operands, os, [&](const OperandInfo &operand) {
    os << operand.name << ": ";
    formulas.printIndices(operand.indices);
  });
  os << ") -> (";
  llvm::interleaveComma(def.results, os, [&](const ResultInfo &result) {
    if (result.extra)
      os << "extra ";
    os << result.name << ": ";
    if (result.dtype)
      os << getName(*result.dtype);
    formulas.printIndices(result.indices);
    if (result.formula) {
      os << " = ";
      formulas.print(result.formula);
    }
  });
  os << ')';
  if (def.vjpOf) {
    auto numbers = [&](llvm::ArrayRef<unsigned> list) {
      llvm::interleaveComma(list, os, [&](unsigned i) { os << i; });
    };
    os << " vjp ";
    printName(os, def.vjpOf->name);
    os << '(';
    numbers(def.vjpGradients);
    os << ") -> (";
    numbers(def.vjpOperands);
    os << ')';
  }
  std::string body;
  llvm::raw_string_ostream bodyStream(body);
  FormulaPrinter bodyFormulas(bodyStream, def);
  printBody(bodyStream, def, bodyFormulas);
  if (bodyStream.str().empty())
    os << ";\n";
  else
    os << " {\n" << body << "}\n";
}
