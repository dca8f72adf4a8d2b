//===- ModuleLowering.cpp - statements of modules -------------------------===//
#include "ModuleLowering.h"
#include "stage/IR/text/Text.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Sema/InferenceWords.h"
#include "stage/Sema/Program.h"
#include <functional>

using namespace stage;

//===----------------------------------------------------------------------===//
// Dims and types
//===----------------------------------------------------------------------===//

sema::CTValue ModuleLowering::nameConstant(llvm::StringRef module, llvm::StringRef name, const CTValue &value) {
  std::optional<int64_t> constant = value.getInteger();
  if (job.constantUnit && constant && *constant % job.constantUnit == 0) {
    graph.binding.bind(sema::constantUnitSymbol, job.constantUnit);
    return CTValue::size(graph.sizes.symbol(sema::constantUnitSymbol) * (*constant / job.constantUnit));
  }
  // Smaller ones switch something on or off.
  if (!job.namesConstants || !constant || *constant < 2)
    return value;
  std::string symbol = (module + "." + name).str();
  if (graph.binding.lookup(symbol).value_or(*constant) != *constant)
    symbol += "@" + std::to_string(*constant);
  graph.binding.bind(symbol, *constant);
  return CTValue::size(graph.sizes.symbol(symbol));
}

sema::CTValue ModuleLowering::nameDim(llvm::StringRef module, llvm::StringRef name, const CTValue &value, SMLoc loc) {
  std::string alias = (module + "." + name).str();
  llvm::SmallVector<Dim *, 1> &answering = dimsByAlias[alias];
  if (auto *known = static_cast<const Dim *>(value.getTag())) {
    auto *dim = const_cast<Dim *>(known);
    // What a strategy says of S is of a whole prefill, and not of what a module samples from.
    if ((isDecoding && dim == sequence) || dim->name == sema::sampledDim || dim->name == sema::proposedDim)
      return value;
    if (!llvm::is_contained(answering, dim)) {
      dim->aliases.push_back(alias);
      answering.push_back(dim);
    }
    return value;
  }
  Size size = value.getSize(graph.sizes);
  // One dim per name, module and size: instances of a module share it.
  for (Dim *dim : answering)
    if (dim->size == size)
      return value.withTag(dim);
  std::string unique = name.str();
  if (!dimNames.insert(unique).second) {
    unique = alias;
    for (unsigned &number = dimNumbers[alias]; !dimNames.insert(unique).second;)
      unique = alias + std::to_string(++number);
  }
  Dim *dim = graph.addDim(unique, size, loc);
  dim->aliases.push_back(alias);
  answering.push_back(dim);
  return value.withTag(dim);
}

/// `(H E)`: one dim for the same parts. Null where a part is no dim.
const Dim *ModuleLowering::nameCompound(const ast::CompoundExpr &compound, Size size, const Environment &env) {
  llvm::SmallVector<const Dim *, 2> parts;
  std::string name;
  for (const ast::Ident &ident : compound.indices) {
    const CTValue *value = env.find(ident.name);
    auto *part = value ? static_cast<const Dim *>(value->getTag()) : nullptr;
    if (!part)
      return nullptr;
    parts.push_back(part);
    name += (name.empty() ? "" : "_") + part->name;
  }
  for (Dim *known : compoundDims[name])
    if (known->parts == parts)
      return known;
  std::string unique = name;
  for (unsigned number = 0; !dimNames.insert(unique).second;)
    unique = name + std::to_string(++number);
  Dim *dim = graph.addDim(unique, size, compound.loc());
  dim->parts = parts;
  compoundDims[name].push_back(dim);
  return dim;
}

/// `F@modell`: an axis that no strategy in sight has, neither in its mesh nor among its parameters, is mistyped.
static void warnUnknownAxis(const Graph &graph, const sema::Program &program, const ast::Ident &ident,
                            DiagnosticEngine &diags) {
  llvm::StringRef name = ident.name;
  std::function<bool(llvm::ArrayRef<ast::Stmt *>)> hasAxis = [&](llvm::ArrayRef<ast::Stmt *> body) {
    return llvm::any_of(body, [&](const ast::Stmt *stmt) {
      auto isNamed = [&](const auto &axis) { return axis.name.name == name; };
      if (auto *mesh = llvm::dyn_cast<ast::MeshStmt>(stmt))
        return llvm::any_of(mesh->axes, isNamed) ||
               llvm::any_of(mesh->second, [&](const ast::Ident &axis) { return axis.name == name; });
      if (auto *alias = llvm::dyn_cast<ast::AxisAliasStmt>(stmt))
        return alias->name.name == name;
      auto *choice = llvm::dyn_cast<ast::IfStmt>(stmt);
      return choice && (hasAxis(choice->thenBody) || hasAxis(choice->elseBody));
    });
  };
  for (const ast::File *file : program.getFiles())
    for (const ast::Decl *decl : file->decls)
      if (auto *strategy = llvm::dyn_cast<ast::StrategyDecl>(decl))
        if (hasAxis(strategy->body) ||
            llvm::any_of(strategy->params, [&](const ast::Param &param) { return param.name.name == name; }))
          return;
  std::string axes;
  for (const Axis &axis : graph.mesh.getAxes())
    axes += (axes.empty() ? "; the mesh of this job has " : ", ") + axis.name;
  diags.report(ident.loc(), diag::AxisOfNoMesh).range(ident.range) << name << axes;
}

std::optional<AxisList> ModuleLowering::lowerAxes(const ast::AxisListSyntax &axes) {
  AxisList list;
  hasAxes = true;
  for (const ast::Ident &name : axes.axes)
    if (job.strategy.decl && job.strategy.expand({name, name.range}).empty())
      warnUnknownAxis(graph, evaluator.getProgram(), name, diags);
  // Axes that the mesh of the job lacks have size 1.
  for (llvm::StringRef name : job.strategy.expand(axes)) {
    std::optional<AxisId> axis = graph.mesh.find(name);
    if (!axis || graph.mesh[*axis].size == 1)
      continue;
    if (llvm::is_contained(list, *axis)) {
      diags.report(axes.range.Start, diag::AxisRepeated).range(axes.range) << name;
      return std::nullopt;
    }
    list.emplace_back(*axis);
  }
  return list;
}

std::optional<TensorType> ModuleLowering::lowerType(const ast::TensorType &type, DType dtype, const Environment &env) {
  TensorType result;
  result.dtype = dtype;
  if (type.dtype)
    result.dtype = *parseDType(type.dtype.name);
  for (const ast::ShapeDim &dim : type.dims) {
    std::optional<CTValue> value = evaluator.evaluate(dim.size, env);
    std::optional<Size> size = value ? evaluator.evaluateSize(dim.size, env) : std::nullopt;
    if (!size)
      return std::nullopt;
    auto *named = static_cast<const Dim *>(value->getTag());
    if (auto *compound = llvm::dyn_cast<ast::CompoundExpr>(dim.size))
      named = nameCompound(*compound, *size, env);
    for (const Extent &other : result.shape)
      if (named && other.dim == named) {
        // A dim answers to every name that it is passed under.
        std::string written = ast::textOf(dim.size);
        DiagnosticBuilder message = diags.report(dim.size->loc(), diag::DimTwiceInShape).range(dim.size->range)
                                    << named->name
                                    << (written == named->name ? "" : ", the second time as '" + written + "'");
        message.fixIt(dim.size->range, written + "2");
        message.note(dim.size->loc(), diag::NameOneDim) << written;
        return std::nullopt;
      }
    result.shape.push_back({named, *size});
    graph.obligations.add(Obligations::Kind::Positive, *size, Size(), dim.size->loc(), "a dim of a tensor");
  }
  return result;
}

bool ModuleLowering::constrain(Value &value, const ast::TensorType &type) {
  Constraint &constraint = value.constraint;
  constraint.dims.resize(value.type.getNumDims());
  constraint.floors.resize(value.type.getNumDims());
  bool any = false;
  for (unsigned d = 0; d < type.dims.size() && d < constraint.dims.size(); ++d) {
    if (!type.dims[d].hasAxes || (isDecoding && value.type.shape[d].dim == sequence))
      continue;
    std::optional<AxisList> axes = lowerAxes(type.dims[d].axes);
    if (!axes)
      return false;
    constraint.dims[d] = *axes;
    any = true;
  }
  if (type.hasPartial) {
    std::optional<AxisList> axes = lowerAxes(type.partial);
    if (!axes)
      return false;
    constraint.partial = toSet(*axes);
    constraint.reduce = type.partialReduce.name == "max"   ? ReduceKind::Max
                        : type.partialReduce.name == "min" ? ReduceKind::Min
                                                           : ReduceKind::Sum;
    any = true;
  }
  if (type.hasReplicated) {
    std::optional<AxisList> axes = lowerAxes(type.replicated);
    if (!axes)
      return false;
    constraint.replicated |= toSet(*axes);
    any = true;
  }
  if (any) {
    constraint.isInline = true;
    constraint.loc = type.loc();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

bool ModuleLowering::lowerModel() {
  if (job.inference)
    return lowerInference();
  if (!lowerPhase(graph.getForward()))
    return false;
  warnUnusedValues(graph, named, diags);
  return true;
}

bool ModuleLowering::lowerPhase(Block &block) {
  RootModel model{job.model, job.modelArgs, ""};
  std::optional<llvm::SmallVector<Value *, 2>> returned = lowerBody(model, block);
  if (returned)
    appendReturn(model, *returned, block);
  return returned.has_value();
}

std::optional<llvm::SmallVector<Value *, 2>> ModuleLowering::lowerBody(const RootModel &model, Block &block) {
  Environment env(evaluator.getProgram().getFile(*model.decl));
  Place place{model.scope, &block, model.decl};
  for (const sema::NamedValue &arg : model.args)
    env.define(arg.name.name, arg.value.isSize()
                                  ? nameDim(model.decl->name.name, arg.name.name, arg.value, arg.range.Start)
                                  : arg.value);
  std::optional<CTValue> result;
  if (!lowerStmts(model.decl->body, env, place, &result))
    return std::nullopt;
  llvm::ArrayRef<CTValue> values =
      result->getKind() == CTValue::Kind::Tuple ? result->getElements() : llvm::ArrayRef<CTValue>(*result);
  const ast::Expr *returned = output ? output->value : llvm::cast<ast::ReturnStmt>(model.decl->body.back())->value;
  llvm::SmallVector<Value *, 2> tensors;
  for (const CTValue &value : values) {
    Value *tensor = expectTensor(value, returned->range);
    if (!tensor)
      return std::nullopt;
    if (tensor->path.empty())
      tensor->path = joinPath(model.scope, output ? "output" : "loss");
    tensors.push_back(tensor);
  }
  return tensors;
}

void ModuleLowering::appendReturn(const RootModel &model, llvm::ArrayRef<Value *> values, Block &block) {
  // Where it returns, unless it ends in another way.
  llvm::ArrayRef<ast::Stmt *> body = model.decl->body;
  bool returns = !body.empty() && llvm::isa<ast::ReturnStmt>(body.back());
  auto op = std::make_unique<Op>(OpKind::Return, returns ? body.back()->loc() : model.decl->loc());
  for (Value *value : values)
    op->addOperand(value);
  block.append(std::move(op));
}

bool ModuleLowering::lowerStmts(llvm::ArrayRef<ast::Stmt *> stmts, Environment &env, Place &place,
                                std::optional<CTValue> *result) {
  bool good = true;
  constexpr unsigned maxStmts = 100'000;
  for (const ast::Stmt *stmt : stmts) {
    if (++numStmts > maxStmts) {
      diags.report(stmt->loc(), diag::ModelTooLarge).range(stmt->range) << int64_t(maxStmts);
      return false;
    }
    switch (stmt->kind) {
    case ast::NodeKind::TensorDeclStmt:
      good &= lowerTensorDecl(*llvm::cast<ast::TensorDeclStmt>(stmt), env, place);
      break;
    case ast::NodeKind::DimStmt:
      good &= lowerDims(*llvm::cast<ast::DimStmt>(stmt), env, place);
      break;
    case ast::NodeKind::LetStmt:
      good &= lowerLet(*llvm::cast<ast::LetStmt>(stmt), env, place);
      break;
    case ast::NodeKind::RequireStmt:
      good &= evaluator.checkRequire(*llvm::cast<ast::RequireStmt>(stmt), env);
      break;
    case ast::NodeKind::RepeatStmt:
      good &= lowerRepeat(*llvm::cast<ast::RepeatStmt>(stmt), env, place);
      break;
    case ast::NodeKind::IfStmt: {
      auto *conditional = llvm::cast<ast::IfStmt>(stmt);
      std::optional<bool> condition = evaluator.evaluateCondition(conditional->condition, env);
      // Names of the branch taken are names of the scope around it: `if bias { param b: [D]; }`.
      good &= condition && lowerStmts(*condition ? conditional->thenBody : conditional->elseBody, env, place, result);
      break;
    }
    case ast::NodeKind::ReturnStmt: {
      auto *returned = llvm::cast<ast::ReturnStmt>(stmt);
      if (returned->isFormula) {
        Op *op =
            OpLowering(graph, evaluator, types)
                .formulaInPlace(returned->indices, returned->value, env, returned->range, *place.block, place.scope);
        if (!op)
          return false;
        *result = tensor(op->getResult());
      } else {
        *result = lower(returned->value, env, place);
      }
      good &= result->has_value();
      break;
    }
    case ast::NodeKind::OutputStmt:
      if (!job.inference)
        break;
      return lowerOutput(*llvm::cast<ast::OutputStmt>(stmt), env, place, result);
    default:
      if (auto *call = llvm::dyn_cast<ast::CallExpr>(llvm::cast<ast::ExprStmt>(stmt)->value);
          call && isCacheCall(*call, env) && llvm::cast<ast::NameExpr>(call->callee)->name == "write") {
        good &= lowerWrite(*call, env, place);
        break;
      }
      diags.report(stmt->loc(), diag::NotSupportedYet).range(stmt->range) << "a call for its effect alone";
      good = false;
    }
    if (!good)
      return false; // what follows would only repeat the fault
  }
  return good;
}

bool ModuleLowering::lowerTensorDecl(const ast::TensorDeclStmt &stmt, Environment &env, Place &place) {
  using Kind = ast::TensorDeclKind;
  if (stmt.declKind == Kind::Cache)
    return lowerCacheDecl(stmt, env, place);
  OpKind kind = stmt.declKind == Kind::Param    ? OpKind::Param
                : stmt.declKind == Kind::Buffer ? OpKind::Buffer
                                                : OpKind::Input;
  std::optional<TensorType> type =
      lowerType(*stmt.type, isState(kind) ? graph.precision.weight : graph.precision.activation, env);
  if (!type)
    return false;
  if (kind == OpKind::Param && !isFloat(type->dtype)) {
    diags.report(stmt.loc(), diag::IntegerParameter).range(stmt.type->range)
        << stmt.names.front().name << getName(type->dtype);
    return false;
  }
  for (const ast::Ident &name : stmt.names) {
    if (isDecoding && isState(kind)) {
      Value *known = findState(place, joinPath(place.scope, name.name));
      if (!known) {
        diags.report(name.loc(), diag::DecodeLayersDiffer).range(name.range) << name.name;
        return false;
      }
      env.define(name.name, tensor(known));
      continue;
    }
    auto op = std::make_unique<Op>(kind, name.loc());
    op->scope = place.scope;
    op->name = name.name.str();
    Value *value = op->addResult(*type, joinPath(place.scope, name.name));
    if (!constrain(*value, *stmt.type))
      return false;
    place.block->append(std::move(op));
    env.define(name.name, tensor(value));
    named.push_back({value, name});
    if (isState(kind))
      addState(place, value);
    if (isState(kind) && !stmt.type->dtype)
      types.addWeight(*value);
  }
  return true;
}

bool ModuleLowering::lowerDims(const ast::DimStmt &stmt, Environment &env, Place &place) {
  for (const ast::Ident &name : stmt.names) {
    std::optional<CTValue> value;
    if (stmt.value) {
      std::optional<Size> size = evaluator.evaluateSize(stmt.value, env);
      if (size)
        value = nameConstant(place.decl->name.name, name.name, CTValue::size(*size)); // also `dim T = S;` is a dim
    } else {
      for (const sema::NamedValue &bound : job.stepDims)
        if (bound.name.name == name.name)
          value = job.inference ? getSequence(bound) : bound.value;
    }
    if (!value)
      return false;
    CTValue dim = nameDim(place.decl->name.name, name.name, *value, name.loc());
    if (job.inference && !stmt.value)
      noteSequence(name.name, dim);
    env.define(name.name, dim);
  }
  return true;
}

std::string ModuleLowering::describe(const TensorType &type) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, graph, type);
  return os.str();
}

/// Whether a name given here is the value's: its first one, or that by which its binder calls a module's result.
static bool awaitsName(const Value &value, const Block *block) {
  const Op *op = value.getOp();
  return op && value.getBlock() == block && !isState(op->kind) && op->kind != OpKind::Input &&
         (value.path.empty() || llvm::StringRef(value.path).endswith(".result"));
}

bool ModuleLowering::assign(const ast::Ident &name, CTValue value, bool define, Environment &env, Place &place) {
  if (value.isForeign()) {
    auto *result = static_cast<Value *>(value.getForeign());
    if (awaitsName(*result, place.block))
      result->path = joinPath(place.scope, name.name);
    named.push_back({result, name});
  }
  if (define) {
    env.define(name.name, value);
    return true;
  }
  const CTValue *target = env.find(name.name);
  if (target->isForeign() && value.isForeign()) {
    const TensorType &before = static_cast<Value *>(target->getForeign())->type;
    const TensorType &after = static_cast<Value *>(value.getForeign())->type;
    bool same = before.getNumDims() == after.getNumDims();
    for (unsigned d = 0; same && d < before.getNumDims(); ++d)
      same = before.shape[d].size == after.shape[d].size;
    if (!same) {
      diags.report(name.loc(), diag::AssignShapeChanged).range(name.range)
          << name.name << describe(before) << describe(after);
      return false;
    }
  }
  // Every scope that a body may assign in has the name as its own: a repeat defines what it carries.
  env.define(name.name, value);
  return true;
}

bool ModuleLowering::lowerLet(const ast::LetStmt &stmt, Environment &env, Place &place) {
  bool define = stmt.form != ast::LetStmt::Form::Assign;
  std::optional<CTValue> value;
  if (stmt.isFormula) {
    Op *op = OpLowering(graph, evaluator, types)
                 .formulaInPlace(stmt.indices, stmt.value, env, stmt.range, *place.block, place.scope);
    if (op)
      value = tensor(op->getResult());
  } else {
    value = lower(stmt.value, env, place);
  }
  if (!value)
    return false;
  if (stmt.targets.size() > 1) {
    if (value->getKind() != CTValue::Kind::Tuple || value->getElements().size() != stmt.targets.size()) {
      diags.report(stmt.loc(), diag::WrongTupleSize).range(stmt.range)
          << int64_t(stmt.targets.size())
          << int64_t(value->getKind() == CTValue::Kind::Tuple ? value->getElements().size() : 1);
      return false;
    }
    for (unsigned i = 0; i < stmt.targets.size(); ++i)
      if (!assign(stmt.targets[i], value->getElements()[i], define, env, place))
        return false;
    return true;
  }
  if (stmt.type) {
    Value *result = expectTensor(value, stmt.value->range);
    if (!result)
      return false;
    std::optional<TensorType> type = lowerType(*stmt.type, result->type.dtype, env);
    if (!type)
      return false;
    bool same = type->getNumDims() == result->type.getNumDims() && type->dtype == result->type.dtype;
    for (unsigned d = 0; same && d < type->getNumDims(); ++d)
      same = type->shape[d].size == result->type.shape[d].size;
    if (!same) {
      diags.report(stmt.type->loc(), diag::AnnotationMismatch).range(stmt.type->range)
          << stmt.targets.front().name << describe(result->type) << describe(*type);
      return false;
    }
    // An annotation says where the value is under this name. What has another name already stays where that says, or
    // where its users want it: here it is a value of its own.
    bool saysWhere = stmt.type->hasPartial || stmt.type->hasReplicated ||
                     llvm::any_of(stmt.type->dims, [](const ast::ShapeDim &dim) { return dim.hasAxes; });
    if (saysWhere && !awaitsName(*result, place.block))
      value = tensor(result = appendCopy("alias", result, std::nullopt, stmt.targets.front().loc(), place));
    if (!constrain(*result, *stmt.type))
      return false;
  }
  return assign(stmt.targets.front(), *value, define, env, place);
}

void ModuleLowering::collectAssigned(llvm::ArrayRef<ast::Stmt *> stmts, const Environment &env,
                                     llvm::SmallVectorImpl<llvm::StringRef> &names) {
  for (const ast::Stmt *stmt : stmts) {
    if (auto *let = llvm::dyn_cast<ast::LetStmt>(stmt)) {
      if (let->form == ast::LetStmt::Form::Assign)
        for (const ast::Ident &target : let->targets)
          if (env.find(target.name) && !llvm::is_contained(names, target.name))
            names.push_back(target.name);
    } else if (auto *conditional = llvm::dyn_cast<ast::IfStmt>(stmt)) {
      collectAssigned(conditional->thenBody, env, names);
      collectAssigned(conditional->elseBody, env, names);
    } else if (auto *repeat = llvm::dyn_cast<ast::RepeatStmt>(stmt)) {
      collectAssigned(repeat->body, env, names);
    }
  }
}

bool ModuleLowering::lowerRepeat(const ast::RepeatStmt &stmt, Environment &env, Place &place) {
  std::optional<Size> end = evaluator.evaluateSize(stmt.end, env);
  std::optional<Size> begin = stmt.begin ? evaluator.evaluateSize(stmt.begin, env) : graph.sizes.zero();
  if (!begin || !end)
    return false;
  Size count = *end - *begin;
  std::optional<int64_t> times = evaluator.getValue(count, stmt.end->range, "the number of iterations");
  if (!times)
    return false;
  if (*times < 1) {
    diags.report(stmt.end->loc(), diag::RepeatEmpty).range(stmt.end->range) << stmt.name.name << *times;
    return false;
  }
  if (place.inLoop)
    return unrollRepeat(stmt, *times, env, place);

  std::optional<int64_t> first =
      stmt.begin ? evaluator.evaluateInteger(stmt.begin, env, "the first iteration") : std::optional<int64_t>(0);
  if (!first)
    return false;

  llvm::SmallVector<llvm::StringRef, 2> assigned, carried;
  collectAssigned(stmt.body, env, assigned);
  for (llvm::StringRef name : assigned)
    if (env.find(name)->isForeign())
      carried.push_back(name);

  auto owner = std::make_unique<Op>(OpKind::Repeat, stmt.loc());
  Op *repeat = owner.get();
  repeat->name = stmt.name.name.str();
  repeat->scope = place.scope;
  repeat->count = count;
  repeat->loop = numLoops++;
  for (llvm::StringRef name : carried)
    repeat->addOperand(static_cast<Value *>(env.find(name)->getForeign()));
  place.block->append(std::move(owner));
  LayerCases layers = findLayerCases(stmt, *first, *times, env, assigned, evaluator);
  if (layers.isTooLong) {
    diags.report(stmt.name.loc(), diag::TooManyVaryingLayers).range(stmt.name.range)
        << stmt.name.name << LayerCases::maxDryRuns;
    return false;
  }
  repeat->cases = layers.iterations;
  for (const LayerCases::Case &layer : layers.cases)
    if (!lowerCase(stmt, layer, carried, env, place, *repeat))
      return false;
  for (auto &[name, value] : layers.after)
    env.define(name, value);
  for (llvm::StringRef name : carried) {
    auto *initial = static_cast<Value *>(env.find(name)->getForeign());
    env.define(name, tensor(repeat->addResult(initial->type, joinPath(place.scope, name))));
  }
  return true;
}

/// One more body of a repeat, for the iterations that begin with these names.
bool ModuleLowering::lowerCase(const ast::RepeatStmt &stmt, const LayerCases::Case &layer,
                               llvm::ArrayRef<llvm::StringRef> carried, Environment &env, Place &place, Op &repeat) {
  constexpr size_t maxCases = 256;
  if (repeat.bodies.size() == maxCases) {
    diags.report(stmt.name.loc(), diag::TooManyCases).range(stmt.name.range) << stmt.name.name << int64_t(maxCases);
    return false;
  }
  Block &block = repeat.addBody(graph);
  Place inside{joinPath(place.scope, stmt.name.name), &block, place.decl, true};
  Environment body(env);
  for (llvm::StringRef name : carried) {
    auto *initial = static_cast<Value *>(env.find(name)->getForeign());
    Value *argument = block.addArgument(initial->type, joinPath(inside.scope, name));
    argument->loc = stmt.loc();
    body.define(name, tensor(argument));
  }
  for (auto &[name, value] : layer.names)
    body.define(name, value);
  std::optional<CTValue> none;
  if (!lowerStmts(stmt.body, body, inside, &none))
    return false;
  auto yield = std::make_unique<Op>(OpKind::Yield, stmt.loc());
  yield->scope = inside.scope;
  for (llvm::StringRef name : carried) {
    Value *value = expectTensor(*body.find(name), stmt.name.range); // it may have become a tuple
    if (!value)
      return false;
    auto *initial = static_cast<Value *>(env.find(name)->getForeign());
    if (value->type.dtype != initial->type.dtype) {
      DiagnosticBuilder message = diags.report(stmt.name.loc(), diag::CarriedDTypeChanged)
                                  << name << getName(initial->type.dtype) << getName(value->type.dtype);
      message.range(stmt.name.range);
      message.note(value->loc, diag::ValueIs) << name << getName(value->type.dtype);
      return false;
    }
    yield->addOperand(value);
  }
  block.append(std::move(yield));
  return true;
}

/// A repeat inside a repeat: its iterations are written out, `inner.0`, `inner.1`, ...
bool ModuleLowering::unrollRepeat(const ast::RepeatStmt &stmt, int64_t count, Environment &env, Place &place) {
  constexpr int64_t limit = 1024;
  if (count > limit) {
    diags.report(stmt.name.loc(), diag::NotSupportedYet).range(stmt.name.range)
        << "a repeat of more than 1024 iterations inside a repeat";
    return false;
  }
  std::optional<int64_t> first =
      stmt.begin ? evaluator.evaluateInteger(stmt.begin, env, "the first iteration") : std::optional<int64_t>(0);
  if (!first)
    return false;
  for (int64_t i = 0; i < count; ++i) {
    Place inside = place;
    inside.scope = joinPath(joinPath(place.scope, stmt.name.name), std::to_string(i));
    if (stmt.variable)
      env.define(stmt.variable.name, CTValue::integer(*first + i));
    std::optional<CTValue> none;
    if (!lowerStmts(stmt.body, env, inside, &none))
      return false;
  }
  return true;
}
