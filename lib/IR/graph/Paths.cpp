//===- Paths.cpp - names of values and of what they stand in --------------===//
#include "stage/IR/graph/Paths.h"

using namespace stage;

llvm::StringRef stage::getLocalName(llvm::StringRef path) {
  llvm::StringRef primal = path;
  primal.consume_back(gradientSuffix);
  return path.substr(primal.rfind('.') + 1);
}

llvm::StringRef stage::getScope(llvm::StringRef path) { return path.drop_back(getLocalName(path).size()).rtrim('.'); }

std::string stage::joinPath(llvm::StringRef scope, llvm::StringRef name) {
  return scope.empty() ? name.str() : (scope + "." + name).str();
}
