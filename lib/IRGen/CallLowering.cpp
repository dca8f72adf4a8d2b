//===- CallLowering.cpp - calls in modules --------------------------------===//
//
// Problem: `attn(norm(x) as n, KV = 8) as attention` calls an op or a module.
//
//   module M(x: [B, S, D], H) -> [B, S, D] { ... }
//   M(h, H = 8) as m        its body, in scope m; B, S and D are the dims of h
//
// A call of an op becomes an OpDef (OpLowering.h), a call of a module its body, written
// out. The dims that the types of its parameters name are those of the arguments, and
// the types of its results must hold of what it returns. `f32(x)` casts.
//
// Limits: modules are called inside each other at most 200 deep.
//
//===----------------------------------------------------------------------===//
#include "ArgumentOrder.h"
#include "ModuleLowering.h"
#include "stage/IR/text/Text.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/IRGen/Suggestions.h"
#include "stage/Sema/Arguments.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Program.h"

using namespace stage;

std::optional<sema::CTValue> ModuleLowering::lowerCall(const ast::CallExpr &expr, Environment &env, Place &place) {
  auto *callee = llvm::dyn_cast<ast::NameExpr>(expr.callee);
  const ast::Decl *decl = nullptr;
  if (callee) {
    const CTValue *value = env.find(callee->name);
    if (value && value->isDecl())
      decl = value->getDecl(); // an op given as an argument
    else if (!value)
      decl = evaluator.getProgram().lookup(env.getFile(), callee->name);
    if (!decl && sema::isDTypeName(callee->name) && expr.args.size() == 1) {
      Value *operand = expectTensor(lower(expr.args[0].value, env, place), expr.args[0].value->range);
      return operand ? cast(operand, *parseDType(callee->name), expr.range, place) : std::nullopt;
    }
  }
  if (auto *op = llvm::dyn_cast_or_null<ast::OpDecl>(decl))
    return callOp(*op, expr, env, place);
  if (auto *module = llvm::dyn_cast_or_null<ast::ModuleDecl>(decl))
    return callModule(*module, expr, env, place);
  if (isCacheCall(expr, env))
    return lowerAppend(expr, env, place);
  bool isBuiltin = callee && !decl && !env.find(callee->name);
  diags.report(expr.loc(), isBuiltin ? diag::ElementFunctionOfTensor : diag::NotCallable).range(expr.callee->range)
      << ast::textOf(expr.callee);
  return std::nullopt;
}

/// `Attention(H, n)`: the call in which `tensor`, an argument for a tensor that is none, and the first tensor that is
/// given for something else have changed places. Only names count, as others would be built to be looked at.
std::string ModuleLowering::suggestSwap(const ast::CallExpr &call, llvm::ArrayRef<ast::Param> params,
                                        const ast::Argument *tensor, Environment &env) {
  auto isTensor = [&](const ast::Argument &argument) {
    auto *name = llvm::dyn_cast<ast::NameExpr>(argument.value);
    const CTValue *value = name ? env.find(name->name) : nullptr;
    return value && value->isForeign();
  };
  auto isNamed = [](const ast::Argument &argument) { return bool(argument.name); };
  if (!tensor || isTensor(*tensor) || llvm::any_of(call.args, isNamed))
    return "";
  const ast::Argument *other = nullptr;
  for (size_t i = 0; i < std::min(call.args.size(), params.size()) && !other; ++i)
    if (!params[i].tensor && isTensor(call.args[i]))
      other = &call.args[i];
  if (!other)
    return "";
  std::string text;
  for (const ast::Argument &argument : call.args) {
    const ast::Argument *shown = &argument == tensor ? other : &argument == other ? tensor : &argument;
    text += (text.empty() ? "" : ", ") + ast::textOf(shown->value);
  }
  return ast::textOf(call.callee) + "(" + text + ")";
}

std::optional<sema::CTValue> ModuleLowering::callOp(const ast::OpDecl &decl, const ast::CallExpr &expr,
                                                    Environment &env, Place &place) {
  UserPlace userPlace(diags, expr.range.Start);
  auto matched = sema::matchArguments(decl.params, expr.args, decl.name.name, expr.range, diags);
  if (!matched)
    return std::nullopt;
  Environment opEnv(evaluator.getProgram().getFile(decl));
  llvm::SmallVector<TensorArgument, 4> tensors;
  for (unsigned i = 0; i < decl.params.size(); ++i) {
    const ast::Param &param = decl.params[i];
    const ast::Argument *argument = (*matched)[i];
    if (!param.tensor) {
      std::optional<CTValue> value = evaluator.evaluateParam(param, argument, opEnv, env);
      if (!value)
        return std::nullopt;
      opEnv.define(param.name.name, *value);
      continue;
    }
    if (!argument) {
      diags.report(param.name.loc(), diag::NotSupportedYet).range(param.name.range)
          << "an operand of an op with a default";
      return std::nullopt;
    }
    Value *value = expectTensor(lower(argument->value, env, place), argument->value->range,
                                [&] { return suggestSwap(expr, decl.params, argument, env); });
    if (!value)
      return std::nullopt;
    tensors.push_back({value, argument->value->range});
  }
  std::vector<CTValue> results;
  for (Value *result :
       OpLowering(graph, evaluator, types).call(decl, tensors, opEnv, expr.range, *place.block, place.scope)) {
    if (expr.as && result->path.empty())
      result->path = joinPath(place.scope, expr.as.name);
    const Op *op = result->getOp(); // null: an argument of a repeat's body, handed on
    if (!op || !op->def || !op->def->results[result->getNumber()].extra)
      results.push_back(tensor(result));
  }
  if (results.empty())
    return std::nullopt;
  return results.size() == 1 ? results.front() : CTValue::tuple(std::move(results));
}

static std::string listDims(const ast::TensorType &type) {
  std::string text;
  for (const ast::ShapeDim &dim : type.dims)
    text += (text.empty() ? "" : ", ") + ast::textOf(dim.size);
  return text;
}

bool ModuleLowering::bindPattern(const ast::TensorType &pattern, Value &value, SMRange range, Environment &env,
                                 const ast::ModuleDecl &decl, llvm::StringRef param, llvm::StringRef otherOrder) {
  if (pattern.dims.size() != value.type.getNumDims()) {
    DiagnosticBuilder message = diags.report(range.Start, diag::WrongNumDims)
                                << decl.name.name << param << describeDimCount(pattern.dims.size())
                                << int64_t(value.type.getNumDims());
    message.range(range);
    message.note(pattern.loc(), diag::PreviousHere) << param;
    if (!otherOrder.empty())
      message.note(SMLoc(), diag::OperandsInOtherOrder) << otherOrder;
    return false;
  }
  for (unsigned d = 0; d < pattern.dims.size(); ++d) {
    const Extent &extent = value.type.shape[d];
    auto *name = llvm::dyn_cast<ast::NameExpr>(pattern.dims[d].size);
    const CTValue *known = name ? env.find(name->name) : nullptr;
    if (name && !known) {
      CTValue size = CTValue::size(extent.size).withTag(extent.dim);
      env.define(name->name, nameDim(decl.name.name, name->name, size, name->loc()));
      continue;
    }
    std::optional<Size> expected = evaluator.evaluateSize(pattern.dims[d].size, env);
    if (!expected)
      return false;
    if (*expected != extent.size) {
      DiagnosticBuilder message = diags.report(range.Start, diag::ShapeMismatch)
                                  << decl.name.name << ("dim " + llvm::Twine(d) + " of '" + param + "'")
                                  << (extent.dim ? extent.dim->name : extent.size.str()) << expected->str();
      message.range(range);
      if (param != "result") {
        message.note(pattern.dims[d].size->loc(), diag::PreviousHere) << param;
        return false;
      }
      std::string found;
      for (const Extent &each : value.type.shape)
        found += (found.empty() ? "" : ", ") + (each.dim ? each.dim->name : each.size.str());
      message.note(pattern.dims[d].size->loc(), diag::ReturnedShape) << decl.name.name << found << listDims(pattern);
      return false;
    }
  }
  return constrain(value, pattern);
}

std::optional<sema::CTValue> ModuleLowering::callModule(const ast::ModuleDecl &decl, const ast::CallExpr &expr,
                                                        Environment &env, Place &place) {
  UserPlace userPlace(diags, expr.range.Start);
  auto matched = sema::matchArguments(decl.params, expr.args, decl.name.name, expr.range, diags);
  if (!matched)
    return std::nullopt;
  // Each level is one on the stack, and a component of the paths below it.
  constexpr unsigned maxDepth = 200;
  if (depth >= maxDepth) {
    diags.report(expr.loc(), diag::ModulesTooDeep).range(expr.range) << int64_t(maxDepth);
    return std::nullopt;
  }
  std::string instance = expr.as ? expr.as.name.str() : decl.name.name.lower();
  Place inside{joinPath(place.scope, instance), place.block, &decl, place.inLoop};
  Environment body(evaluator.getProgram().getFile(decl));
  std::vector<TensorArgument> before; // this one and those before it
  for (unsigned i = 0; i < decl.params.size(); ++i) {
    const ast::Param &param = decl.params[i];
    const ast::Argument *argument = (*matched)[i];
    if (param.tensor) {
      const ast::Expr *given = argument ? argument->value : param.defaultValue;
      Value *value = expectTensor(argument ? lower(given, env, place) : lower(given, body, inside), given->range,
                                  [&] { return suggestSwap(expr, decl.params, argument, env); });
      if (!value)
        return std::nullopt;
      before.push_back({value, given->range});
      // The tensors behind it say whether it stands in the wrong place.
      std::string otherOrder;
      if (value->type.getNumDims() != param.tensor->dims.size()) {
        for (unsigned j = i + 1; j < decl.params.size(); ++j)
          if (decl.params[j].tensor && (*matched)[j])
            if (Value *other = expectTensor(lower((*matched)[j]->value, env, place), (*matched)[j]->value->range))
              before.push_back({other, (*matched)[j]->value->range});
        otherOrder = suggestOrder(decl.name.name, decl.params, before);
      }
      if (!bindPattern(*param.tensor, *value, given->range, body, decl, param.name.name, otherOrder))
        return std::nullopt;
      body.define(param.name.name, tensor(value));
      continue;
    }
    std::optional<CTValue> value = evaluator.evaluateParam(param, argument, body, env);
    if (!value)
      return std::nullopt;
    if (const CTValue *pattern = body.find(param.name.name)) {
      // A dim of a tensor pattern that is given as well must agree.
      if (value->isSize() && pattern->isSize() && value->getSize(graph.sizes) != pattern->getSize(graph.sizes)) {
        SMRange range = argument ? argument->value->range : expr.range;
        diags.report(range.Start, diag::ShapeMismatch).range(range)
            << decl.name.name << ("'" + param.name.name + "'").str() << value->getSize(graph.sizes).str()
            << pattern->getSize(graph.sizes).str();
        return std::nullopt;
      }
      continue;
    }
    llvm::StringRef name = param.name.name;
    if (value->isSize())
      value = nameDim(decl.name.name, name, nameConstant(decl.name.name, name, *value), param.name.loc());
    body.define(name, *value);
  }
  std::optional<CTValue> result;
  ++depth;
  bool good = lowerStmts(decl.body, body, inside, &result);
  --depth;
  if (!good)
    return std::nullopt;
  llvm::ArrayRef<CTValue> values =
      result->getKind() == CTValue::Kind::Tuple ? result->getElements() : llvm::ArrayRef<CTValue>(*result);
  if (values.size() != decl.results.size() && !decl.results.empty()) {
    DiagnosticBuilder message = diags.report(decl.body.back()->loc(), diag::WrongResultCount)
                                << decl.name.name << int64_t(values.size()) << int64_t(decl.results.size());
    message.range(decl.body.back()->range);
    message.note(decl.results.front()->loc(), diag::PreviousHere) << decl.name.name;
    return std::nullopt;
  }
  for (unsigned i = 0; i < decl.results.size(); ++i) {
    SMRange range = llvm::cast<ast::ReturnStmt>(decl.body.back())->value->range;
    Value *value = expectTensor(values[i], range);
    if (!value || !bindPattern(*decl.results[i], *value, range, body, decl, "result"))
      return std::nullopt;
    if (value->path.empty())
      value->path = joinPath(inside.scope, "result");
  }
  return result;
}
