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
  for (const sema::Override &value : result.base.values) {
    llvm::StringRef name = llvm::StringRef(value.name);
    name = name.contains('.') ? name.rsplit('.').second : name;
    llvm::StringRef owner = sema::findSearchOwner(session.getFiles(), *job, name);
    values.push_back({owner.empty() ? value.name : name.str(), owner, value.value.getSpelling()});
  }
  for (const sema::WrittenValue &value : values)
    if (value.owner.empty()) {
      session.getDiags().report(SMLoc(), diag::ValueNotWritten) << value.name << value.text;
      return std::nullopt;
    }
  Space space(result.space);
  std::vector<std::string> texts = space.describe(plan.number);
  for (size_t i = 0; i != texts.size(); ++i) {
    bool follows = i >= result.space.names.size();
    std::string name =
        follows ? result.space.following[i - result.space.names.size()].name : result.space.names[i].name;
    values.push_back({name, sema::findSearchOwner(session.getFiles(), *job, name), texts[i]});
  }
  return sema::writeJob(session.getFiles(), *job, values, session.getDiags());
}
