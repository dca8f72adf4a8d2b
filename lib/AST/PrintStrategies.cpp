//===- PrintStrategies.cpp - rules of strategies as text ------------------===//
#include "Printer.h"

using namespace stage;
using namespace stage::ast;

void Printer::shard(const ShardStmt *node) {
  os << "shard ";
  commas(node->items, [&](const ShardStmt::Item &item) {
    os << (item.dims.size() > 1 ? "(" : "");
    for (size_t i = 0; i < item.dims.size(); ++i)
      os << (i ? ", " : "") << item.dims[i].name << (item.mayLack[i] ? "?" : "");
    os << (item.dims.size() > 1 ? ")" : "");
    os << " over ";
    axes(item.axes);
    if (item.order) {
      os << " order ";
      expr(item.order);
    }
  });
}

void Printer::mesh(const MeshStmt *node) {
  os << "mesh (";
  commas(node->axes, [&](const MeshStmt::AxisSyntax &axis) {
    os << axis.name.name;
    if (axis.size) {
      os << " = ";
      expr(axis.size);
    }
  });
  os << ')';
  if (!node->second.empty()) {
    os << " = (";
    names(node->second);
    os << ')';
  }
  if (!node->topology.empty()) {
    os << " on topology (";
    exprs(node->topology);
    os << ')';
  }
}

void Printer::at(const AtStmt *node) {
  os << "at ";
  pattern(node->pattern);
  if (node->rules.size() != 1) {
    os << ' ';
    block(node->rules);
    os << '\n';
    return;
  }
  os << ": ";
  unsigned outer = std::exchange(indent, 0); // the rule goes on with the line
  stmt(node->rules[0]);
  indent = outer;
}

void Printer::partition(const PartitionStmt *node) {
  os << "partition " << node->what.name << " over ";
  axes(node->axes);
  if (!node->units.empty()) {
    os << " by unit ";
    commas(node->units, [&](const Pattern &unit) { pattern(unit); });
  }
  optionalBlock(node->entries);
}

void Printer::reduce(const ReduceStmt *node) {
  os << "reduce " << node->what.name << " over ";
  axes(node->axes);
  optionalBlock(node->entries);
}

void Printer::layerRule(const LayerRuleStmt *node) {
  auto *offload = llvm::dyn_cast<OffloadStmt>(node);
  auto *quantize = llvm::dyn_cast<QuantizeStmt>(node);
  os << (offload ? "offload " : quantize ? "quantize " : "recompute ");
  commas(node->patterns, [&](const Pattern &what) { pattern(what); });
  if (offload)
    os << " to " << offload->where.name;
  if (offload && offload->after) {
    os << " after ";
    expr(offload->after);
  }
  if (quantize) {
    os << " as ";
    expr(quantize->what);
  }
  if (quantize && quantize->blocks) {
    os << " by ";
    expr(quantize->blocks);
  }
  if (node->condition) {
    os << " if ";
    expr(node->condition);
  }
  optionalBlock(node->entries);
}

void Printer::slow(const SlowStmt *node) {
  os << "slow rank (";
  commas(llvm::zip(node->axes.axes, node->coordinates), [&](const auto &entry) {
    os << std::get<0>(entry).name << " = ";
    expr(std::get<1>(entry));
  });
  os << ") by ";
  expr(node->by);
  os << ";\n";
}

void Printer::search(const SearchStmt *node) {
  os << "search {\n";
  indent += 2;
  for (const SearchStmt::Values &entry : node->values) {
    line() << entry.name.name << (entry.isOne ? " = " : " in ");
    expr(entry.values);
    os << ";\n";
  }
  for (const Stmt *require : node->requires_)
    stmt(require);
  indent -= 2;
  line() << "}\n";
}

void Printer::flag(const FlagStmt *node) {
  commas(node->flags, [&](const StringExpr *name) { expr(name); });
  if (node->value) {
    os << " = ";
    expr(node->value);
  }
  if (node->condition) {
    os << " if ";
    expr(node->condition);
  }
  os << (node->isIgnored() ? " ignored" : "");
}

void Printer::pattern(const Pattern &pattern) {
  os << pattern.text;
  if (!pattern.hasDims)
    return;
  os << ": [" << (pattern.dimsEllipsis ? "..." : "") << (pattern.dimsEllipsis && !pattern.dims.empty() ? ", " : "");
  names(pattern.dims);
  os << ']';
}
