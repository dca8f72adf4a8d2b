//===- OpLowering.cpp - an op of the program becomes an OpDef -------------===//
#include "OpLowering.h"
#include "ArgumentOrder.h"
#include "IndexNames.h"
#include "stage/IR/graph/Subscripts.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/IRGen/Suggestions.h"
#include "stage/Support/Origins.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

std::string stage::describeDimCount(size_t count, bool orMore) {
  return (orMore ? "at least " : "") + std::to_string(count) + (count == 1 ? " dim" : " dims");
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

unsigned OpLowering::addIndex(llvm::StringRef name, const Extent &extent, SMLoc loc) {
  unsigned index = addUnnamedIndex(extent, loc);
  def.indices[index].name = name.str();
  isOwnIndex[index] = true;
  indexByName[name] = index;
  return index;
}

/// An index that the op has no name for, as for one position of a pack. It wishes to be named after the dim that
/// stands there; no name of the op's can mean it.
unsigned OpLowering::addUnnamedIndex(const Extent &extent, SMLoc loc) {
  std::string name = extent.dim ? llvm::StringRef(extent.dim->name).rsplit('.').second.str() : "";
  if (name.empty() && extent.dim)
    name = extent.dim->name;
  unsigned index = def.indices.size();
  def.indices.push_back({llvm::StringRef(name).lower()});
  extents.push_back(extent);
  indexLocs.push_back(loc);
  isOwnIndex.push_back(false);
  return index;
}

std::optional<unsigned> OpLowering::bindIndex(const ast::Expr *expr, const Extent &extent,
                                              const TensorArgument &argument, unsigned position) {
  auto *name = llvm::dyn_cast<ast::NameExpr>(expr);
  const sema::CTValue *known = name ? env->find(name->name) : nullptr;
  if (!name || (known && known->isSize() && !indexByName.count(name->name) && !inPlace)) {
    // A size: the operand must have just this one here.
    std::optional<Size> size = evaluator.evaluateSize(expr, *env);
    if (!size)
      return std::nullopt;
    if (*size != extent.size) {
      DiagnosticBuilder message =
          diags.report(argument.range.Start, diag::ShapeMismatch)
          << def.name << ("dim " + llvm::Twine(position) + " of '" + describe(*argument.value) + "'")
          << describeExtent(extent, graph.binding) << describeExtent({nullptr, *size}, graph.binding);
      message.range(argument.range);
      return std::nullopt;
    }
    return addUnnamedIndex({nullptr, extent.size}, argument.range.Start);
  }
  auto it = indexByName.find(name->name);
  if (it == indexByName.end())
    return addIndex(name->name, extent, argument.range.Start);
  if (extents[it->second].size != extent.size) {
    reportTwoSizes(name->name, it->second, extent, argument, position);
    return std::nullopt;
  }
  return it->second;
}

bool OpLowering::bindOperand(llvm::StringRef name, llvm::ArrayRef<ast::ShapeDim> dims, const TensorArgument &argument,
                             llvm::StringRef opName) {
  llvm::ArrayRef<Extent> shape = argument.value->type.shape;
  unsigned numPacks = llvm::count_if(dims, [](const ast::ShapeDim &d) { return llvm::isa<ast::EllipsisExpr>(d.size); });
  size_t fixed = dims.size() - numPacks;
  auto wrongRank = [&] {
    DiagnosticBuilder message = diags.report(argument.range.Start, diag::WrongNumDims)
                                << opName << name << describeDimCount(fixed, fixed != dims.size())
                                << int64_t(shape.size());
    message.range(argument.range);
    std::string wanted;
    for (const ast::ShapeDim &dim : dims)
      wanted += (wanted.empty() ? "" : ", ") + ast::textOf(dim.size);
    message.note(SMLoc(), diag::OperandDims) << opName << name << "[" + wanted + "]";
    if (std::string other = declared ? suggestOrder(opName, declared->params, given) : ""; !other.empty())
      message.note(SMLoc(), diag::OperandsInOtherOrder) << other;
    return false;
  };
  if (numPacks > 1) {
    noteCall(diags.report(dims.front().size->loc(), diag::NotSupportedYet).range(dims.front().size->range)
             << "two packs in one operand");
    return false;
  }
  if (shape.size() < fixed || (numPacks == 0 && shape.size() != fixed))
    return wrongRank();
  OperandInfo info{name.str(), {}};
  unsigned position = 0;
  for (const ast::ShapeDim &dim : dims) {
    if (auto *pack = llvm::dyn_cast<ast::EllipsisExpr>(dim.size)) {
      size_t length = shape.size() - fixed;
      auto [it, fresh] = packs.try_emplace(pack->name);
      if (!fresh && it->second.size() != length)
        return wrongRank();
      for (size_t i = 0; i < length; ++i, ++position) {
        if (fresh) {
          it->second.push_back(addUnnamedIndex(shape[position], argument.range.Start));
        } else if (extents[it->second[i]].size != shape[position].size) {
          std::string index = def.indices[it->second[i]].name;
          if (index.empty())
            index = "dim " + std::to_string(position);
          DiagnosticBuilder message = diags.report(argument.range.Start, diag::ShapeMismatch).range(argument.range)
                                      << opName << ("index '" + index + "'")
                                      << describeExtent(shape[position], graph.binding)
                                      << describeExtent(extents[it->second[i]], graph.binding);
          message.note(indexLocs[it->second[i]], diag::IndexBoundHere)
              << index << describeExtent(extents[it->second[i]], graph.binding);
          return false;
        }
        info.indices.push_back(it->second[i]);
      }
      continue;
    }
    if (auto *compound = llvm::dyn_cast<ast::CompoundExpr>(dim.size)) {
      openCompounds.push_back({compound, shape[position++], argument.range,
                               std::pair(unsigned(def.operands.size()), unsigned(info.indices.size()))});
      info.indices.push_back(~0u); // once all operands are known
      continue;
    }
    std::optional<unsigned> index = bindIndex(dim.size, shape[position], argument, position);
    if (!index)
      return false;
    info.indices.push_back(*index);
    ++position;
  }
  operandByName[name] = def.operands.size();
  def.operands.push_back(std::move(info));
  operands.push_back(argument.value);
  return true;
}

/// Indices of a result or a saved extra: all must be known by now, or be sizes.
std::optional<llvm::SmallVector<unsigned, 4>> OpLowering::resolveIndices(llvm::ArrayRef<ast::ShapeDim> dims) {
  llvm::SmallVector<unsigned, 4> indices;
  for (const ast::ShapeDim &dim : dims) {
    if (auto *pack = llvm::dyn_cast<ast::EllipsisExpr>(dim.size)) {
      indices.append(packs[pack->name]);
      continue;
    }
    auto *name = llvm::dyn_cast<ast::NameExpr>(dim.size);
    if (auto it = name ? indexByName.find(name->name) : indexByName.end(); it != indexByName.end()) {
      indices.push_back(it->second);
      continue;
    }
    if (auto *compound = llvm::dyn_cast<ast::CompoundExpr>(dim.size)) {
      std::optional<unsigned> index = findCompound(*compound, nullptr, compound->range);
      if (!index)
        return std::nullopt;
      indices.push_back(*index);
      continue;
    }
    const sema::CTValue *known = name ? env->find(name->name) : nullptr;
    if (name && !(known && known->isSize())) {
      noteCall(diags.report(dim.size->loc(), diag::NoSuchIndex).range(dim.size->range) << name->name << def.name);
      return std::nullopt;
    }
    std::optional<Size> size = evaluator.evaluateSize(dim.size, *env);
    if (!size)
      return std::nullopt;
    Extent extent{known ? static_cast<const Dim *>(known->getTag()) : nullptr, *size};
    unsigned index = addUnnamedIndex(extent, dim.size->loc());
    if (name)
      indexByName[name->name] = index;
    indices.push_back(index);
  }
  return indices;
}

/// A fault inside a declaration is one of the call that made it.
void OpLowering::noteCall(DiagnosticBuilder &&message) const {
  if (calledAt.isValid())
    message.note(calledAt.Start, diag::CalledHere) << def.name;
}

//===----------------------------------------------------------------------===//
// Declared ops
//===----------------------------------------------------------------------===//

bool OpLowering::addResult(llvm::StringRef name, const ast::TensorType &type, bool extra) {
  auto indices = resolveIndices(type.dims);
  if (!indices)
    return false;
  ResultInfo result;
  result.name = name.str();
  result.indices = *indices;
  result.extra = extra;
  if (type.dtype)
    result.dtype = parseDType(type.dtype.name);
  def.results.push_back(std::move(result));
  return true;
}

bool OpLowering::checkMixing(llvm::StringRef name, Value *value, SMRange range) {
  if (!firstFree) {
    firstFree = value;
    firstFreeName = name.str();
    return true;
  }
  DType type = firstFree->type.dtype, found = value->type.dtype;
  if (isFloat(type) == isFloat(found))
    return true;
  diags.report(range.Start, diag::MixedDTypes).range(range)
      << "'" + firstFreeName + "'" << getName(type) << "'" + name + "'" << getName(found);
  return false;
}

llvm::SmallVector<Value *, 2> OpLowering::call(const ast::OpDecl &decl, llvm::ArrayRef<TensorArgument> arguments,
                                               sema::Environment &opEnv, SMRange range, Block &block,
                                               llvm::StringRef scope) {
  env = &opEnv;
  def.name = declName = decl.name.name.str();
  def.loc = decl.loc();
  calledAt = range;
  declared = &decl;
  given = arguments;
  if (!refuseClauses(decl))
    return {};
  unsigned next = 0;
  for (const ast::Param &param : decl.params) {
    if (!param.tensor)
      continue;
    const TensorArgument &argument = arguments[next++];
    if (param.tensor->dtype) {
      std::optional<DType> wanted = parseDType(param.tensor->dtype.name);
      DType found = argument.value->type.dtype;
      if (wanted && *wanted != found && (!isFloat(*wanted) || !isFloat(found))) {
        DiagnosticBuilder message = diags.report(argument.range.Start, diag::WrongDType)
                                    << def.name << param.name.name << getName(*wanted) << getName(found);
        message.range(argument.range);
        if (std::string other = suggestOrder(def.name, decl.params, arguments); !other.empty())
          message.note(SMLoc(), diag::OperandsInOtherOrder) << other;
        else if (argument.value->getOp() && argument.value->getOp()->kind == OpKind::Input) {
          if (mayRedeclare(*argument.value))
            setOrigin(message, {argument.value->loc, argument.value->loc});
          message.note(SMLoc(), diag::CastOperand) << stage::describe(*argument.value) << getName(*wanted);
        }
        return {};
      }
    }
    if (!param.tensor->dtype && !checkMixing(param.name.name, argument.value, argument.range))
      return {};
    if (!bindOperand(param.name.name, param.tensor->dims, argument, def.name))
      return {};
  }
  // `slots: size c` makes c an index of that size.
  for (const ast::Param &param : decl.params)
    if (param.sizeIndex) {
      const sema::CTValue *value = opEnv.find(param.name.name);
      if (value && value->isSize())
        addIndex(param.sizeIndex.name, {static_cast<const Dim *>(value->getTag()), value->getSize(graph.sizes)},
                 range.Start);
    }
  if (!bindCompounds(openCompounds))
    return {};
  for (const ast::OpDecl::Result &result : decl.results)
    if (!addResult(result.name ? result.name.name : "result", *result.type, false))
      return {};
  if (!lowerBody(decl))
    return {};
  if (Value *argument = findHandedOn())
    return {argument};
  llvm::SmallVector<Value *, 2> results;
  if (!complete())
    return {};
  std::vector<ProductTerm> parts = findParts();
  for (const ProductTerm &part : parts)
    results.push_back(appendPart(part, range, block, scope)->getResult());
  if (!parts.empty())
    return results;
  if (Op *op = append(std::move(def), operands, extents, range, block, scope))
    for (auto &result : op->getResults())
      results.push_back(result.get());
  return results;
}

/// The result of that name; a lone one is called `result` besides its own. Null for an operand.
ResultInfo *OpLowering::findResult(llvm::StringRef name) {
  auto declared = [](const ResultInfo &result) { return !result.extra; };
  if (name == "result" && llvm::count_if(def.results, declared) == 1)
    return &*llvm::find_if(def.results, declared);
  auto found = llvm::find_if(def.results, [&](const ResultInfo &r) { return declared(r) && r.name == name; });
  return found == def.results.end() ? nullptr : &*found;
}

/// What is not lowered is said before what follows from it.
bool OpLowering::refuseClauses(const ast::OpDecl &decl) {
  using Clause = ast::OpClauseStmt::Clause;
  for (const ast::Stmt *stmt : decl.body)
    if (auto *clause = llvm::dyn_cast<ast::OpClauseStmt>(stmt)) {
      bool isScan = clause->clause == Clause::Scan;
      if (!isScan && clause->clause != Clause::Updates)
        continue;
      noteCall(diags.report(clause->loc(), diag::NotSupportedYet).range(clause->range)
               << (isScan ? "'scan'" : "'updates'"));
      return false;
    }
  if (decl.results.empty()) {
    noteCall(diags.report(decl.name.loc(), diag::NotSupportedYet).range(decl.name.range) << "ops without a result");
    return false;
  }
  return true;
}

bool OpLowering::lowerBody(const ast::OpDecl &decl) {
  auto setFormula = [&](llvm::StringRef name, const ast::Expr *value) {
    ResultInfo *result = findResult(name);
    return (result->formula = lower(value)) != nullptr;
  };
  if (decl.formula) {
    auto *tuple = llvm::dyn_cast<ast::TupleExpr>(decl.formula);
    if (decl.results.size() == 1) {
      if (!setFormula(def.results.front().name, decl.formula))
        return false;
    } else {
      for (unsigned i = 0; i < tuple->elements.size(); ++i)
        if (!(def.results[i].formula = lower(tuple->elements[i])))
          return false;
    }
  }
  for (const ast::Stmt *stmt : decl.body) {
    if (auto *let = llvm::dyn_cast<ast::LetStmt>(stmt)) {
      if (let->form == ast::LetStmt::Form::Assign) {
        if (!setFormula(let->targets.front().name, let->value))
          return false;
        continue;
      }
      const Formula *value = lower(let->value);
      if (!value)
        return false;
      letByName[let->targets.front().name] = def.lets.size();
      def.lets.emplace_back(let->targets.front().name.str(), value);
    } else if (auto *clause = llvm::dyn_cast<ast::OpClauseStmt>(stmt)) {
      if (!lowerClause(*clause))
        return false;
    }
  }
  return true;
}

bool OpLowering::forEachNamed(llvm::ArrayRef<ast::Ident> names, llvm::function_ref<void(unsigned)> f) {
  for (const ast::Ident &name : names) {
    auto it = indexByName.find(name.name);
    if (it == indexByName.end()) {
      noteCall(diags.report(name.loc(), diag::NoSuchIndex).range(name.range) << name.name << def.name);
      return false;
    }
    f(it->second);
  }
  return true;
}

bool OpLowering::lowerClause(const ast::OpClauseStmt &clause) {
  using Clause = ast::OpClauseStmt::Clause;
  auto cost = [&](const ast::Expr *expr, Size &size) {
    std::optional<Size> lowered = lowerCost(expr);
    if (lowered)
      size = *lowered;
    return lowered.has_value();
  };
  switch (clause.clause) {
  case Clause::Whole:
    return forEachNamed(clause.names, [&](unsigned index) { def.indices[index].whole = true; });
  case Clause::Fold:
    if (!forEachNamed(clause.names, [&](unsigned index) { def.indices[index].fold = true; }))
      return false;
    if (!clause.formula)
      return true;
    // What is carried from block to block is a result like others: how two are merged follows from its formula
    // (Fold.h).
    return addResult(clause.extraName.name, *clause.extraType, /*extra=*/true) &&
           (def.results.back().formula = lower(clause.formula));
  case Clause::Mask: {
    Mask mask;
    maskClause = &clause;
    mask.kind = *parseMaskKind(clause.word.name);
    auto find = [&](const ast::Expr *argument) {
      return indexByName.lookup(llvm::cast<ast::NameExpr>(argument)->name);
    };
    mask.rows = find(clause.arguments[0]);
    mask.columns = find(clause.arguments[1]);
    if (clause.arguments.size() > 2) {
      // Of the whole op: sizes of the program, no indices.
      std::optional<Size> amount = evaluator.evaluateSize(clause.arguments[2], *env);
      if (!amount)
        return false;
      if (!amount->isConstant(0)) // no offset
        mask.amount = *amount;
      graph.obligations.add(Obligations::Kind::Positive, mask.kind == Mask::Kind::Causal ? *amount + 1 : *amount,
                            Size(), clause.arguments[2]->loc(), "the third argument of a mask");
    }
    def.mask = mask;
    return true;
  }
  case Clause::Flops:
    flopsClause = clause.because ? nullptr : &clause;
    return cost(clause.value, def.flops);
  case Clause::Bytes:
    return cost(clause.value, def.bytes);
  case Clause::FlopClass:
    def.declaredClass = parseFlopClass(llvm::cast<ast::NameExpr>(clause.value)->name);
    return true;
  case Clause::BackwardFlops:
    backwardClause = clause.because ? nullptr : &clause;
    return cost(clause.value, def.backwardFlops) && (!clause.value2 || cost(clause.value2, def.backwardRecompute));
  case Clause::Saves: {
    def.declaresSaves = true;
    if (clause.extraName)
      return addResult(clause.extraName.name, *clause.extraType, true);
    for (const ast::Ident &name : clause.names) {
      if (name.name == "nothing")
        continue;
      auto operand = operandByName.find(name.name);
      if (operand != operandByName.end()) {
        def.savedOperands.push_back(operand->second);
        continue;
      }
      def.savedResults.push_back(findResult(name.name) - def.results.data());
    }
    return true;
  }
  case Clause::Opaque:
    def.opaque = true;
    return true;
  case Clause::StopGradient:
    def.stopGradient = true;
    return true;
  case Clause::Linear: // found from the formula, against which checkLinear() holds it
    linearClauses.push_back(&clause);
    return true;
  case Clause::Routes:
    routesClause = &clause;
    return true;
  case Clause::Scan:
  case Clause::Updates:
    break;
  }
  llvm_unreachable("refused by refuseClauses");
}

/// The element type of results that do not say theirs.
DType OpLowering::getResultType() const {
  for (Value *operand : operands)
    if (isFloat(operand->type.dtype))
      return types.get(*operand);
  return operands.empty() ? graph.precision.activation : operands.front()->type.dtype;
}

Op *OpLowering::finish(SMRange range, Block &block, llvm::StringRef scope) {
  return complete() ? append(std::move(def), operands, extents, range, block, scope) : nullptr;
}

/// Checks what is known once all of the op is, and names its indices.
bool OpLowering::complete() {
  if (!checkSubscripts() || !checkMask() || !lowerRoutes())
    return false;
  chooseIndexNames(def, isOwnIndex, graph.defs, graph.binding);
  return true;
}

/// Null after an error.
Op *OpLowering::append(OpDef made, llvm::ArrayRef<Value *> madeOf, llvm::ArrayRef<Extent> sizes, SMRange range,
                       Block &block, llvm::StringRef scope) {
  DType fallback = getResultType();
  auto op = std::make_unique<Op>(OpKind::Compute, range.Start);
  op->scope = scope.str();
  op->extents.assign(sizes.begin(), sizes.end());
  for (Value *operand : madeOf)
    op->addOperand(operand);
  for (const ResultInfo &info : made.results) {
    TensorType type;
    type.dtype = info.dtype.value_or(fallback);
    llvm::SmallVector<const Dim *, 4> named;
    for (unsigned index : info.indices) {
      Extent extent = sizes[index];
      // A second position of the same dim has no name of its own: it answers to its index only.
      if (extent.dim && llvm::is_contained(named, extent.dim))
        extent.dim = nullptr;
      named.push_back(extent.dim);
      type.shape.push_back(extent);
    }
    op->addResult(std::move(type));
  }
  std::string name = made.name;
  op->def = graph.defs.add(std::move(made));
  if (!checkLinear(*op->def, name))
    return nullptr;
  warnCosts(*op);
  forEachSubscriptSize(*op, graph.sizes, [&](Size size) {
    graph.obligations.add(Obligations::Kind::Divides, size, graph.sizes.one(), op->loc,
                          "a subscript in '" + name + "' is a whole number");
  });
  return block.append(std::move(op));
}
