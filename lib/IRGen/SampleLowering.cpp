//===- SampleLowering.cpp - tokens, and where they go ---------------------===//
//
// Problem: what a model puts out are logits; a server makes a token of those of the last position, and the next
// step of the sequence begins with it.
//
//   step = infer(B = 64, S = 4096, for T in 4096..5096, sample = Greedy);
//
//   forward   ... return %logits                     ... %token = first_of(%logits, %top); return %logits, %token
//   decode    %tokens = input : i32[B, step]         %tokens = input : i32[B, step] fed
//   units     F0 F1 D2(context=4097) D3(..)          F0 F1 D2(context=4097)<0 D3(..)<1
//
// Algorithm: the module stands in each phase behind what is put out, of the last position where only that is
// made. The one input that a phase reads tokens from is *fed*: a unit says which one before has sampled
// them. That is the unit before of the same batch, and, where a server goes through requests, the last one in which a
// request sampled that goes on in this one.
//
// A proof gives both sides the same tokens, whatever is sampled, and compares the samples.
//
//===----------------------------------------------------------------------===//
#include "ModuleLowering.h"
#include "stage/IR/text/Text.h"
#include "stage/IRGen/Diagnostics.h"
#include "stage/Sema/Program.h"
#include "llvm/ADT/DenseMap.h"

using namespace stage;

/// What is put out, and behind it what the module samples from that. Nothing after errors.
std::optional<llvm::SmallVector<Value *, 2>> ModuleLowering::sample(llvm::ArrayRef<Value *> outputs,
                                                                    llvm::StringRef scope, Block &block) {
  llvm::SmallVector<Value *, 2> all(outputs.begin(), outputs.end());
  const ast::ModuleDecl *decl = job.inference->sampler;
  if (!decl)
    return all;
  SMRange range = job.inference->samplerRange;
  if (outputs.size() != 1) {
    diags.report(range.Start, diag::SampleOfSeveral).range(range) << int64_t(outputs.size());
    return std::nullopt;
  }
  UserPlace userPlace(diags, range.Start);
  Environment env(evaluator.getProgram().getFile(*decl));
  Place place{joinPath(scope, "sample"), &block, decl};
  const ast::Param &logits = decl->params.front();
  if (!bindPattern(*logits.tensor, *outputs.front(), range, env, *decl, logits.name.name))
    return std::nullopt;
  env.define(logits.name.name, tensor(outputs.front()));
  for (const sema::NamedValue &argument : job.inference->samplerArgs) {
    llvm::StringRef name = argument.name.name;
    bool isSize = argument.value.isSize();
    env.define(name, isSize ? nameDim(decl->name.name, name, nameConstant(decl->name.name, name, argument.value),
                                      argument.range.Start)
                            : argument.value);
  }
  std::optional<CTValue> result;
  if (!lowerStmts(decl->body, env, place, &result))
    return std::nullopt;
  Value *token = result->getKind() == CTValue::Kind::Tuple ? nullptr : expectTensor(*result, range);
  const TensorType &from = outputs.front()->type;
  bool isToken = token && !isFloat(token->type.dtype) && token->type.getNumDims() + 1 == from.getNumDims();
  for (unsigned d = 0; isToken && d < token->type.getNumDims(); ++d)
    isToken = token->type.shape[d].size == from.shape[d].size;
  if (!isToken) {
    diags.report(range.Start, diag::SampleIsNoToken).range(range)
        << decl->name.name << (token ? describe(token->type) : "several tensors") << describe(from);
    return std::nullopt;
  }
  if (token->path.empty())
    token->path = joinPath(place.scope, "token");
  all.push_back(token);
  return all;
}

/// Samples behind what a block returns. `isFed`: the tokens that it reads are those of units before.
bool ModuleLowering::sampleReturned(Block &block, llvm::StringRef scope, bool isFed) {
  if (!job.inference->sampler)
    return true;
  std::unique_ptr<Op> end = block.take(block.getTerminator());
  llvm::SmallVector<Value *, 2> outputs;
  for (Value *output : end->getOperands())
    outputs.push_back(output);
  std::optional<llvm::SmallVector<Value *, 2>> all = sample(outputs, scope, block);
  if (all)
    end->addOperand(all->back());
  block.append(std::move(end));
  return all && (!isFed || feed(block, *all->back()));
}

/// Finds the input of a phase that tokens stand in: integers of the same sequences.
bool ModuleLowering::feed(Block &block, const Value &token) {
  llvm::SmallVector<Op *, 1> inputs;
  Graph::walk(block, [&](Op &op) {
    if (op.kind != OpKind::Input)
      return;
    const TensorType &type = op.getResult()->type;
    bool isLike = type.dtype == token.type.dtype && type.getNumDims() == token.type.getNumDims();
    for (unsigned d = 0; isLike && d < type.getNumDims(); ++d)
      isLike = type.shape[d].dim == sequence || type.shape[d].size == token.type.shape[d].size;
    if (isLike)
      inputs.push_back(&op);
  });
  if (inputs.size() != 1) {
    SMRange range = job.inference->samplerRange;
    diags.report(range.Start, diag::SampleFeedsNothing).range(range) << int64_t(inputs.size()) << describe(token.type);
    return false;
  }
  inputs.front()->isFed = true;
  return true;
}

/// Of requests, or sequences of different lengths: which unit has sampled what a unit begins with. Of the former a unit
/// of forward may have some that decode.
void stage::feedPackedUnits(const ServedUnits &served, bool ofRequests, std::vector<Unit> &units) {
  llvm::DenseMap<int64_t, unsigned> sampledBy; // by sequence, the last unit
  for (Unit &unit : units) {
    if (movesCaches(unit.kind))
      continue;
    for (const SequencePart &part : served.units[unit.microbatch].sequences) {
      if (auto last = sampledBy.find(part.sequence); last != sampledBy.end() && (ofRequests || isDecoding(unit.kind)))
        unit.feeder = std::max(unit.feeder.value_or(0), last->second);
      if (part.sampled)
        sampledBy[part.sequence] = unit.microbatch;
      else
        sampledBy.erase(part.sequence);
    }
  }
}
