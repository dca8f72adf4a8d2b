//===- GroupIterations.cpp - several iterations as one --------------------===//
#include "stage/IR/graph/GroupIterations.h"
#include "CopyOps.h"
#include "stage/IR/graph/Paths.h"
#include <map>

using namespace stage;

namespace {
class IterationGrouper {
public:
  /// Per case of a group the cases of its members.
  using Members = std::vector<unsigned>;

  IterationGrouper(Graph &graph, const Op &repeat, llvm::ArrayRef<Members> ofCases)
      : graph(graph), loop(repeat.loop), path(joinPath(repeat.scope, repeat.name)), ofCases(ofCases),
        copies(ofCases.size()) {
    for (unsigned number = 0; number < ofCases.size(); ++number)
      copies[number].resize(ofCases[number].size());
  }

  void run(Size count, const IterationCases &cases) {
    for (Block &phase : graph.getPhases())
      for (auto &op : phase)
        if (op->kind == OpKind::Repeat && op->loop == loop) {
          group(*op);
          op->count = count;
          op->cases = cases;
        }
    for (auto &members : copies)
      for (OpCopies &member : members) {
        member.tie();
        for (auto [op, copy] : member.getOps())
          for (Value *operand : op->getOperands())
            copy->addOperand(member.find(operand));
      }
    replaceContributions();
    while (!old.empty())
      old.pop_back(); // users first
  }

private:
  void group(Op &repeat) {
    auto bodies = std::move(repeat.bodies);
    repeat.bodies.clear();
    for (unsigned number = 0; number < ofCases.size(); ++number) {
      Block &body = repeat.addBody(graph);
      llvm::ArrayRef<unsigned> members = ofCases[number];
      std::vector<Value *> carried; // by the repeat, as the next member finds it
      const Op *yield = nullptr;
      for (size_t i = 0; i < members.size(); ++i) {
        size_t member = repeat.reverse ? members.size() - 1 - i : i;
        Block &from = *bodies[members[member]];
        OpCopies &copy = copies[number][member];
        size_t firstOp = copy.getOps().size(), firstValue = copy.getValues().size();
        if (i == 0)
          copy.addArguments(from, body);
        else
          for (auto &argument : from.getArguments())
            copy.bind(argument.get(), carried[argument->getNumber()]);
        yield = from.getTerminator();
        copy.addOps(from, body, yield);
        rename(copy, firstOp, firstValue, member);
        carried.clear();
        for (Value *value : yield->getOperands())
          carried.push_back(copy.find(value));
      }
      Op *end = body.append(std::make_unique<Op>(static_cast<const OpAttributes &>(*yield)));
      for (Value *value : carried)
        end->addOperand(value);
    }
    for (auto &body : bodies)
      old.push_back(std::move(body));
  }

  /// `layers.x` of member 1 is `layers.1.x`.
  void rename(const OpCopies &copy, size_t firstOp, size_t firstValue, size_t member) const {
    auto name = [&](std::string &of) {
      llvm::StringRef rest = of;
      if (rest.consume_front(path) && (rest.empty() || rest.front() == '.'))
        of = path + "." + std::to_string(member) + rest.str();
    };
    for (auto [op, made] : copy.getOps().drop_front(firstOp))
      name(made->scope);
    for (auto [value, made] : copy.getValues().drop_front(firstValue))
      name(made->path);
  }

  /// A param that layers share is updated with what each member adds up.
  void replaceContributions() {
    for (auto &body : old)
      for (auto &op : *body)
        if (op->kind == OpKind::Accumulate)
          while (Op *update = findUpdate(*op->getResult())) {
            std::vector<Value *> operands;
            for (Value *operand : update->getOperands())
              if (operand != op->getResult())
                operands.push_back(operand);
              else
                for (auto &members : copies)
                  for (OpCopies &member : members)
                    if (Value *copy = member.find(operand); copy != operand)
                      operands.push_back(copy);
            update->clearOperands();
            for (Value *operand : operands)
              update->addOperand(operand);
          }
  }

  /// One that is in no body of the repeat.
  static Op *findUpdate(const Value &sum) {
    for (auto [user, operand] : sum.getUses())
      if (user->kind == OpKind::Update && !user->getBlock()->getParent())
        return user;
    return nullptr;
  }

  Graph &graph;
  const unsigned loop;
  const std::string path;
  llvm::ArrayRef<Members> ofCases;
  std::vector<std::vector<OpCopies>> copies; ///< By case of a group, and member.
  std::vector<std::unique_ptr<Block>> old;
};
} // namespace

void stage::groupIterations(Graph &graph, const Op &repeat, llvm::ArrayRef<int64_t> lengths) {
  std::map<IterationGrouper::Members, unsigned> numbers;
  std::vector<IterationGrouper::Members> ofCases;
  IterationCases cases;
  int64_t iteration = 0;
  for (int64_t length : lengths) {
    IterationGrouper::Members members;
    for (int64_t i = 0; i < length; ++i)
      members.push_back(repeat.cases.get(iteration++));
    auto [known, isNew] = numbers.try_emplace(members, ofCases.size());
    if (isNew)
      ofCases.push_back(std::move(members));
    cases.append(known->second, 1);
  }
  bool areEqual = ofCases.size() == 1;
  Size count = areEqual ? repeat.count / lengths.front() : graph.sizes.constant(int64_t(lengths.size()));
  IterationGrouper(graph, repeat, ofCases).run(count, areEqual ? IterationCases() : cases);
}
