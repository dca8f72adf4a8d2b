//===- TaskNames.cpp - what the nodes of an op are called -----------------===//
#include "stage/Tasks/TaskNames.h"
#include "stage/IR/text/Text.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

/// `contract.1.dw` is a gradient of the second operator of the name `contract`, and a `contract.dw` to people.
static std::string dropVariant(llvm::StringRef kind) {
  llvm::SmallVector<llvm::StringRef, 3> parts;
  kind.split(parts, '.');
  llvm::erase_if(parts, [](llvm::StringRef part) { return llvm::all_of(part, llvm::isDigit); });
  return llvm::join(parts, ".");
}

TaskNames::TaskNames(const Graph &graph) {
  for (auto &def : graph.defs.all()) {
    auto [known, isNew] = classes.try_emplace(dropVariant(def->name), def->flopClass);
    if (!isNew && known->second != def->flopClass)
      known->second.reset();
  }
}

/// Variants keep their numbers where their FLOPs are of different classes: the gradient of a scale is a contraction if
/// the scale is broadcast, and elementwise if not.
std::string TaskNames::getOpType(const Op &op) const {
  if (!op.def)
    return getName(op.kind).str();
  std::string type = dropVariant(op.def->name);
  return classes.lookup(type) ? type : op.def->name;
}

TaskName TaskNames::get(const Op &op) const {
  llvm::StringRef kind = op.def ? llvm::StringRef(op.def->name) : getName(op.kind);
  std::string path = op.getNumResults() ? op.getResult()->path : "";
  if (op.kind == OpKind::Update)
    path = op.getOperand(0)->path;
  if (path.empty())
    path = joinPath(op.scope, kind);
  else if (isCommunication(op.kind) || isCopy(op.kind) || op.kind == OpKind::Update || isAddition(op.kind))
    path += (op.getNumResults() > 1 ? " and " + std::to_string(op.getNumResults() - 1) + " more " : " ") + kind.str();
  TaskName name;
  name.opType = getOpType(op);
  const Op *loop = op.getBlock()->getParent();
  name.inLoop = loop != nullptr;
  std::string prefix = loop ? joinPath(loop->scope, loop->name) + "." : "";
  if (loop && llvm::StringRef(path).startswith(prefix)) {
    name.beforeIteration = prefix;
    name.afterIteration = "." + path.substr(prefix.size());
  } else {
    name.beforeIteration = prefix;
    name.afterIteration = loop ? "." + path : path;
  }
  return name;
}
