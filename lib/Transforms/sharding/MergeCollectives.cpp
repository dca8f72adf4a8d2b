//===- MergeCollectives.cpp - several collectives as one ------------------===//
#include "MergeCollectives.h"
#include "stage/IR/text/Text.h"

using namespace stage;

static std::string getCommonScope(llvm::ArrayRef<Op *> members) {
  std::string scope = members.front()->scope;
  for (const Op *member : members)
    while (!scope.empty() && member->scope != scope && !llvm::StringRef(member->scope).startswith(scope + "."))
      scope = getScope(scope).str();
  return scope;
}

Op &stage::mergeCollectives(llvm::ArrayRef<Op *> members, Op &where) {
  const Op &first = *members.front();
  auto owner = std::make_unique<Op>(static_cast<const OpAttributes &>(first));
  owner->scope = getCommonScope(members);
  for (Op *member : members) {
    owner->addOperand(member->getOperand(0));
    const Value &old = *member->getResult();
    Value *result = owner->addResult(old.type, old.path);
    result->sharding = old.sharding;
    result->loc = old.loc;
    result->primal = old.primal;
    if (member != &first && !first.flat && first.kind != OpKind::AllReduce)
      owner->moreDims.push_back(member->dim);
  }
  Block &block = *where.getBlock();
  Op *merged = block.insertBefore(&where, std::move(owner));
  for (unsigned i = 0; i < members.size(); ++i) {
    members[i]->getResult()->replaceAllUsesWith(merged->getResult(i));
    block.erase(members[i]);
  }
  return *merged;
}

const Stream *stage::addStream(Graph &graph, llvm::StringRef name, StreamKind kind, bool hasMessages) {
  auto stream = std::make_shared<Stream>();
  stream->name = name.str();
  while (graph.findStream(stream->name))
    stream->name += "_";
  stream->kind = kind;
  stream->hasMessages = hasMessages;
  stream->number = graph.streams.size();
  graph.streams.push_back(stream);
  return stream.get();
}

const Stream *stage::getStreamOfLoads(Graph &graph) {
  const Stream *known = graph.findStream("loads");
  return known && known->kind == StreamKind::Copies ? known : addStream(graph, "loads", StreamKind::Copies);
}
