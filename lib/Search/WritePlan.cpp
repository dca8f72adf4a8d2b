//===- WritePlan.cpp - a plan that was found as a program -----------------===//
#include "Space.h"
#include "stage/AST/AST.h"
#include "stage/Search/Diagnostics.h"
#include "stage/Search/Search.h"
#include "stage/Sema/Program.h"

using namespace stage;

std::optional<std::string> stage::writePlan(Session &session, const SearchResult &result, const FoundPlan &plan) {
  std::vector<sema::WrittenValue> values;
  const ast::JobDecl *job = sema::findJob(session.getFiles(), result.job, session.getDiags());
  if (!job)
    return std::nullopt;
  Spaces spaces(result.spaces);
  auto [space, number] = spaces.locate(plan.number);
  const sema::BoundSearch &search = result.spaces[space];
  auto findOwner = [&](llvm::StringRef name) {
    return sema::findSearchOwner(session.getFiles(), *job, name, search.strategy);
  };
  for (const sema::Override &value : result.base.values) {
    llvm::StringRef name = llvm::StringRef(value.name);
    name = name.contains('.') ? name.rsplit('.').second : name;
    llvm::StringRef owner = findOwner(name);
    values.push_back({owner.empty() ? value.name : name.str(), owner, value.value.getSpelling()});
  }
  for (const sema::WrittenValue &value : values)
    if (value.owner.empty()) {
      session.getDiags().report(SMLoc(), diag::ValueNotWritten) << value.name << value.text;
      return std::nullopt;
    }
  std::vector<std::string> texts = spaces.get(space).describe(number);
  for (size_t i = 0; i != texts.size(); ++i) {
    bool follows = i >= search.names.size();
    std::string name = follows ? search.following[i - search.names.size()].name : search.names[i].name;
    values.push_back({name, findOwner(name), texts[i]});
  }
  return sema::writeJob(session.getFiles(), *job, search.strategy, values, session.getDiags());
}
