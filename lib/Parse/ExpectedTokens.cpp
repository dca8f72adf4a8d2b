//===- ExpectedTokens.cpp - what could have stood where a parse failed ----===//
#include "ExpectedTokens.h"
#include <tuple>
#include <utility>
#include <vector>

using namespace stage;
using namespace stage::parse;
using namespace antlr4::atn;

namespace {

/// The grammar's automaton in all states that it can be in.
class Simulation {
public:
  explicit Simulation(antlr4::Parser &parser) : atn(parser.getATN()) {
    // From the outermost rule inwards: where each returns to.
    std::vector<antlr4::RuleContext *> contexts;
    for (antlr4::RuleContext *context = parser.getContext(); context && !context->isEmpty();
         context = static_cast<antlr4::RuleContext *>(context->parent))
      contexts.push_back(context);
    const Frame *stack = nullptr;
    for (auto it = contexts.rbegin(); it != contexts.rend(); ++it)
      if (auto *call = asCall(*atn.states[(*it)->invokingState]->transitions[0]))
        stack = push(stack, call->followState);
    reach(atn.states[parser.getState()], stack);
  }

  void consume(size_t token) {
    std::set<Config> before = std::exchange(configs, {});
    for (auto [state, stack] : before)
      for (const auto &transition : state->transitions)
        if (!transition->isEpsilon() && transition->matches(token, 0, atn.maxTokenType))
          reach(transition->target, stack);
  }

  std::set<size_t> expected() const {
    std::set<size_t> tokens;
    for (auto [state, stack] : configs)
      for (const auto &transition : state->transitions)
        if (!transition->isEpsilon())
          for (ssize_t token : transition->label().toList())
            tokens.insert(token);
    return tokens;
  }

private:
  /// A stack of states to return to; equal stacks are one object.
  struct Frame {
    const Frame *below;
    const ATNState *follow;
    bool operator<(const Frame &other) const { return std::tie(below, follow) < std::tie(other.below, other.follow); }
  };
  using Config = std::pair<const ATNState *, const Frame *>;

  static const RuleTransition *asCall(const Transition &transition) {
    return dynamic_cast<const RuleTransition *>(&transition);
  }
  const Frame *push(const Frame *below, const ATNState *follow) { return &*frames.insert({below, follow}).first; }

  /// Adds a state and all that follow it without a token.
  void reach(const ATNState *state, const Frame *stack) {
    std::vector<Config> pending = {{state, stack}};
    while (!pending.empty()) {
      auto config = pending.back();
      pending.pop_back();
      if (!configs.insert(config).second)
        continue;
      auto [next, frame] = config;
      if (dynamic_cast<const RuleStopState *>(next)) {
        if (frame)
          pending.push_back({frame->follow, frame->below});
        continue;
      }
      for (const auto &transition : next->transitions) {
        if (auto *call = asCall(*transition))
          pending.push_back({call->target, push(frame, call->followState)});
        else if (transition->isEpsilon())
          pending.push_back({transition->target, frame});
      }
    }
  }

  const ATN &atn;
  std::set<Frame> frames;
  std::set<Config> configs;
};

} // namespace

std::set<size_t> parse::expectedAt(antlr4::Parser &parser, const antlr4::Token *first, const antlr4::Token *last) {
  Simulation simulation(parser);
  for (size_t i = first->getTokenIndex(); i < last->getTokenIndex(); ++i) {
    antlr4::Token *token = parser.getTokenStream()->get(i);
    if (token->getChannel() == antlr4::Token::DEFAULT_CHANNEL)
      simulation.consume(token->getType());
  }
  return simulation.expected();
}
