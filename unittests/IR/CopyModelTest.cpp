//===- CopyModelTest.cpp - a graph of its own for each plan ---------------===//
#include "ParsedGraph.h"
#include "stage/IR/graph/Rule.h"

using namespace stage;

namespace {
class CopyModelTest : public ::testing::Test, protected GraphSource {
protected:
  static std::string print(const Graph &graph) {
    std::string text;
    llvm::raw_string_ostream out(text);
    stage::print(out, const_cast<Graph &>(graph));
    return out.str();
  }

  /// Like `from`, which it is a plan of.
  static std::unique_ptr<Graph> copy(const std::shared_ptr<Graph> &from) {
    auto plan = std::make_unique<Graph>(from->sizes);
    plan->name = from->name;
    plan->mesh = from->mesh;
    plan->binding = from->binding;
    plan->copyModel(from);
    return plan;
  }
};

/// Reads one of the graphs of the tests, with several blocks and cases.
std::string readFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

TEST_F(CopyModelTest, IsLikeTheModel) {
  for (const char *name : {"/Interp/cases.sir", "/Memory/gpt-block.sir", "/CodeGen/streams.sir"}) {
    std::string text = readFile(std::string(STAGE_TEST_DIR) + name);
    text = text.substr(text.find("\ngraph ") + 1);
    text = text.substr(0, text.find("\n}\n") + 3);
    std::shared_ptr<Graph> model = parse(text);
    ASSERT_TRUE(model) << messages.str();
    std::unique_ptr<Graph> plan = copy(model);
    // What belongs to a plan is not copied.
    plan->microbatches = model->microbatches;
    plan->rules = model->rules;
    plan->obligations = model->obligations;
    plan->precision = model->precision;
    plan->optimizer = model->optimizer;
    plan->pipeline = model->pipeline;
    plan->training = model->training;
    plan->unpadded = model->unpadded;
    EXPECT_EQ(print(*plan), print(*model)) << name;
    // Uses stand in the same order, and can be taken away in it.
    std::vector<std::string> uses[2];
    for (Graph *graph : {model.get(), plan.get()})
      graph->walk([&](Op &op) {
        for (auto &result : op.getResults())
          for (auto [user, operand] : result->getUses())
            uses[graph == plan.get()].push_back(result->path + " " + user->scope + std::to_string(operand) +
                                                (user->def ? user->def->name : stage::getName(user->kind).str()));
      });
    EXPECT_EQ(uses[0], uses[1]);
    std::string before = print(*model);
    plan->walk([](Op &op) { op.clearOperands(); });
    plan.reset();
    EXPECT_EQ(print(*model), before);
  }
}

/// Operators of a plan are its own; they have the names that they would have if the model were its own, too.
TEST_F(CopyModelTest, OperatorsGoOnFromTheModel) {
  std::shared_ptr<Graph> model = parse("graph M { dim D; bind D = 2; op add(x0: [i0]) -> (result: [i0] = x0[i0]);"
                                       " forward { %x = input : f32[D]; %y = add(%x) : f32[D]; return %y; } }");
  ASSERT_TRUE(model) << messages.str();
  const OpDef *known = model->defs.find("add");
  for (int i = 0; i < 2; ++i) { // what one plan adds is not there for the next
    std::unique_ptr<Graph> plan = copy(model);
    EXPECT_EQ(plan->defs.find("add"), known);
    EXPECT_EQ(plan->defs.getSum(1, 1), known);
    const OpDef *two = plan->defs.getSum(1, 2), *three = plan->defs.getSum(1, 3);
    EXPECT_EQ(two->name, "add.1");
    EXPECT_EQ(three->name, "add.2");
    EXPECT_EQ(plan->defs.getSum(1, 2), two);
    EXPECT_EQ(plan->defs.all().size(), 3u);
  }
  EXPECT_EQ(model->defs.all().size(), 1u);
}
} // namespace
