//===- PrintStmts.cpp - statements as text --------------------------------===//
#include "Printer.h"

using namespace stage;
using namespace stage::ast;
using llvm::cast;
using llvm::dyn_cast;

void Printer::block(ArrayRef<Stmt *> body) {
  os << "{\n";
  indent += 2;
  for (const Stmt *item : body)
    stmt(item);
  indent -= 2;
  line() << "}";
}

void Printer::optionalBlock(ArrayRef<Stmt *> body) {
  if (body.empty()) {
    os << ";\n";
    return;
  }
  os << ' ';
  block(body);
  os << '\n';
}

void Printer::stmt(const Stmt *stmt) {
  if (auto *dim = llvm::dyn_cast<DimStmt>(stmt))
    docs(dim->doc);
  else if (auto *entry = llvm::dyn_cast<EntryStmt>(stmt))
    docs(entry->doc);
  else if (auto *level = llvm::dyn_cast<LevelStmt>(stmt))
    docs(level->doc);
  else if (auto *kernels = llvm::dyn_cast<KernelStmt>(stmt))
    docs(kernels->doc);
  line();
  switch (stmt->kind) {
  case NodeKind::TensorDeclStmt: {
    static const char *const words[] = {"param ", "input ", "buffer ", "cache "};
    auto *node = cast<TensorDeclStmt>(stmt);
    os << words[unsigned(node->declKind)];
    names(node->names);
    os << ": ";
    type(node->type);
    if (node->last) {
      os << (node->isPast ? " past " : " last ");
      expr(node->last);
    }
    break;
  }
  case NodeKind::OutputStmt:
    os << "output ";
    expr(cast<OutputStmt>(stmt)->value);
    break;
  case NodeKind::DimStmt:
    os << "dim ";
    names(cast<DimStmt>(stmt)->names);
    if (auto *value = cast<DimStmt>(stmt)->value) {
      os << " = ";
      expr(value);
    }
    break;
  case NodeKind::LetStmt:
    let(cast<LetStmt>(stmt));
    break;
  case NodeKind::ReturnStmt: {
    auto *node = cast<ReturnStmt>(stmt);
    os << "return ";
    if (node->isFormula) {
      os << '[';
      exprs(node->indices);
      os << "] = ";
    }
    expr(node->value);
    break;
  }
  case NodeKind::RepeatStmt: {
    auto *node = cast<RepeatStmt>(stmt);
    os << "repeat " << node->name.name << '[';
    if (node->variable)
      os << node->variable.name << " in ";
    if (node->begin) {
      expr(node->begin);
      os << "..";
    }
    expr(node->end);
    os << "] ";
    block(node->body);
    os << '\n';
    return;
  }
  case NodeKind::IfStmt:
    ifStmt(cast<IfStmt>(stmt));
    os << '\n';
    return;
  case NodeKind::RequireStmt:
    os << "require ";
    expr(cast<RequireStmt>(stmt)->condition);
    if (auto *message = cast<RequireStmt>(stmt)->message) {
      os << ", ";
      expr(message);
    }
    break;
  case NodeKind::ExprStmt:
    expr(cast<ExprStmt>(stmt)->value);
    break;
  case NodeKind::OpClauseStmt:
    clause(cast<OpClauseStmt>(stmt));
    break;
  case NodeKind::SearchStmt:
    search(cast<SearchStmt>(stmt));
    return;
  case NodeKind::FlagStmt:
    flag(cast<FlagStmt>(stmt));
    break;
  case NodeKind::MeshStmt:
    mesh(cast<MeshStmt>(stmt));
    break;
  case NodeKind::AxisAliasStmt:
    os << "axis " << cast<AxisAliasStmt>(stmt)->name.name << " = ";
    axes(cast<AxisAliasStmt>(stmt)->axes);
    break;
  case NodeKind::ShardStmt:
    shard(cast<ShardStmt>(stmt));
    break;
  case NodeKind::AtStmt:
    return at(cast<AtStmt>(stmt));
  case NodeKind::PipelineStmt: {
    ArrayRef<Pattern> repeats = cast<PipelineStmt>(stmt)->repeats;
    os << (repeats.size() > 1 ? "pipeline (" : "pipeline ");
    commas(repeats, [&](const Pattern &what) { pattern(what); });
    os << (repeats.size() > 1 ? ") over " : " over ");
  }
    axes(cast<PipelineStmt>(stmt)->axes);
    return optionalBlock(cast<PipelineStmt>(stmt)->entries);
  case NodeKind::KeepStmt:
    os << "keep gathered over ";
    axes(cast<KeepStmt>(stmt)->axes);
    break;
  case NodeKind::RingStmt:
    os << "ring " << cast<RingStmt>(stmt)->index.name << " over ";
    axes(cast<RingStmt>(stmt)->axes);
    return optionalBlock(cast<RingStmt>(stmt)->entries);
  case NodeKind::ReplicateStmt:
    os << "replicate ";
    commas(cast<ReplicateStmt>(stmt)->patterns, [&](const Pattern &what) { pattern(what); });
    if (cast<ReplicateStmt>(stmt)->hasAxes) {
      os << " over ";
      axes(cast<ReplicateStmt>(stmt)->axes);
    }
    break;
  case NodeKind::EntryStmt:
    os << cast<EntryStmt>(stmt)->name.name << " = ";
    expr(cast<EntryStmt>(stmt)->value);
    break;
  case NodeKind::LevelStmt:
    os << "level " << cast<LevelStmt>(stmt)->name.name;
    if (cast<LevelStmt>(stmt)->base)
      os << " extends " << cast<LevelStmt>(stmt)->base.name;
    entries(cast<LevelStmt>(stmt)->entries);
    os << '\n';
    return;
  case NodeKind::KernelStmt: {
    auto *kernels = cast<KernelStmt>(stmt);
    if (kernels->resident)
      os << "resident " << kernels->resident.name << " ";
    os << (kernels->isFusion ? "fuse " : "at ");
    if (kernels->opClass)
      os << "class " << kernels->opClass.name;
    else
      pattern(kernels->pattern);
    if (kernels->isFusion)
      break;
    entries(kernels->entries);
    os << '\n';
    return;
  }
  case NodeKind::PlaceStmt:
    os << "place ";
    names(cast<PlaceStmt>(stmt)->names);
    os << " = " << cast<PlaceStmt>(stmt)->where.name;
    break;
  case NodeKind::PartitionStmt:
    return partition(cast<PartitionStmt>(stmt));
  case NodeKind::ReduceStmt:
    return reduce(cast<ReduceStmt>(stmt));
  case NodeKind::PadStmt:
    os << "pad " << cast<PadStmt>(stmt)->dim.name << " to ";
    expr(cast<PadStmt>(stmt)->to);
    break;
  case NodeKind::RecomputeStmt:
    return layerRule(cast<RecomputeStmt>(stmt));
  case NodeKind::QuantizeStmt:
    return layerRule(cast<QuantizeStmt>(stmt));
  case NodeKind::OffloadStmt:
    return layerRule(cast<OffloadStmt>(stmt));
  case NodeKind::SlowStmt:
    return slow(cast<SlowStmt>(stmt));
  case NodeKind::OverlapStmt:
    os << "overlap " << cast<OverlapStmt>(stmt)->what.name;
    if (cast<OverlapStmt>(stmt)->hasAxes) {
      os << ' ';
      axes(cast<OverlapStmt>(stmt)->axes);
    }
    os << " with " << cast<OverlapStmt>(stmt)->with.name;
    break;
  case NodeKind::OtherRuleStmt: {
    os << cast<OtherRuleStmt>(stmt)->text;
    break;
  }
  case NodeKind::ForStmt: {
    auto *node = cast<ForStmt>(stmt);
    os << "for " << node->variable.name << " in ";
    expr(node->begin);
    os << "..";
    expr(node->end);
    os << ' ';
    block(node->body);
    os << '\n';
    return;
  }
  case NodeKind::VirtualStmt:
    os << "virtual ";
    expr(cast<VirtualStmt>(stmt)->count);
    if (auto *place = cast<VirtualStmt>(stmt)->place) {
      os << " at ";
      expr(place);
    }
    break;
  case NodeKind::FnStmt:
    os << "fn " << cast<FnStmt>(stmt)->name.name << '(';
    names(cast<FnStmt>(stmt)->params);
    os << ") = ";
    expr(cast<FnStmt>(stmt)->value);
    break;
  case NodeKind::StateStmt:
    os << "state ";
    names(cast<StateStmt>(stmt)->names);
    os << ": " << cast<StateStmt>(stmt)->dtype.name;
    break;
  default:
    llvm_unreachable("not a statement");
  }
  os << ";\n";
}

void Printer::let(const LetStmt *node) {
  if (node->form != LetStmt::Form::Assign)
    os << (node->form == LetStmt::Form::Var ? "var " : "let ");
  bool tuple = node->targets.size() > 1;
  os << (tuple ? "(" : "");
  names(node->targets);
  os << (tuple ? ")" : "");
  if (node->isFormula) {
    os << '[';
    exprs(node->indices);
    os << ']';
  }
  if (node->type) {
    os << ": ";
    type(node->type);
  }
  os << " = ";
  expr(node->value);
}

void Printer::ifStmt(const IfStmt *node) {
  os << "if ";
  expr(node->condition);
  os << ' ';
  block(node->thenBody);
  if (node->elseBody.empty())
    return;
  os << " else ";
  auto *chained = node->elseBody.size() == 1 ? dyn_cast<IfStmt>(node->elseBody[0]) : nullptr;
  if (chained)
    ifStmt(chained);
  else
    block(node->elseBody);
}

void Printer::because(const OpClauseStmt *node) {
  if (!node->because)
    return;
  os << " because ";
  expr(node->because);
}

void Printer::clause(const OpClauseStmt *node) {
  using Clause = OpClauseStmt::Clause;
  switch (node->clause) {
  case Clause::Whole:
    os << "whole ";
    names(node->names);
    return;
  case Clause::Fold:
    os << "fold ";
    names(node->names);
    if (node->extraName) {
      os << " carrying " << node->extraName.name << ": ";
      type(node->extraType);
      if (node->formula) {
        os << " = ";
        expr(node->formula);
      }
    }
    return;
  case Clause::Mask:
    os << "mask " << node->word.name << '(';
    exprs(node->arguments);
    os << ')';
    return;
  case Clause::Flops:
    os << "flops = ";
    expr(node->value);
    return because(node);
  case Clause::Bytes:
    os << "bytes = ";
    return expr(node->value);
  case Clause::FlopClass:
    os << "class = ";
    return expr(node->value);
  case Clause::Saves:
    os << "saves ";
    if (node->extraName) {
      os << node->extraName.name << ": ";
      type(node->extraType);
    } else if (node->names.empty()) {
      os << "nothing";
    } else {
      names(node->names);
    }
    return;
  case Clause::BackwardFlops:
    os << "backward flops = ";
    expr(node->value);
    if (node->value2) {
      os << ", recomputing ";
      expr(node->value2);
    }
    return because(node);
  case Clause::Linear:
    os << "linear ";
    return names(node->names);
  case Clause::Scan:
    os << "scan ";
    return names(node->names);
  case Clause::Routes:
    os << "routes ";
    names(node->names);
    os << " -> ";
    names(node->names2);
    for (auto [word, value] : {std::pair(" by ", node->value), std::pair(" if ", node->value2)})
      if (value) {
        os << word;
        expr(value);
      }
    return;
  case Clause::Updates:
    os << "updates ";
    names(node->names);
    os << " along ";
    return names(node->names2);
  case Clause::Opaque:
    os << "opaque";
    return;
  case Clause::StopGradient:
    os << "stop_gradient";
    return;
  }
}
