//===- PhaseLook.cpp - how kinds of units look in pictures ----------------===//
#include "PhaseLook.h"
#include "llvm/Support/ErrorHandling.h"

using namespace stage;

namespace {
struct Look {
  const char *fill;
  llvm::raw_ostream::Colors terminal;
};
} // namespace

static Look getLook(PhaseKind kind) {
  using Colors = llvm::raw_ostream::Colors;
  switch (kind) {
  case PhaseKind::Forward:
    return {"#9ccbf0", Colors::CYAN};
  case PhaseKind::Draft:
    return {"#c5dfb3", Colors::GREEN};
  case PhaseKind::Decode:
    return {"#8fd0c8", Colors::BLUE};
  case PhaseKind::Store:
  case PhaseKind::Load:
    return {"#e3d9c6", Colors::WHITE};
  case PhaseKind::Recompute:
    return {"#d3c1e6", Colors::MAGENTA};
  case PhaseKind::Backward:
    return {"#f5b27a", Colors::YELLOW};
  case PhaseKind::BackwardInput:
    return {"#f7dc6f", Colors::YELLOW};
  case PhaseKind::BackwardWeight:
    return {"#9fd8a8", Colors::GREEN};
  case PhaseKind::Reduce:
  case PhaseKind::Step:
    return {"#c8ccd0", Colors::WHITE};
  }
  llvm_unreachable("covered switch");
}

const char *stage::getFill(PhaseKind kind) { return getLook(kind).fill; }

llvm::raw_ostream::Colors stage::getTerminalColor(PhaseKind kind) { return getLook(kind).terminal; }

std::string stage::describeKind(PhaseKind kind) {
  switch (kind) {
  case PhaseKind::BackwardInput:
    return "backward for the input";
  case PhaseKind::BackwardWeight:
    return "backward for the weights";
  case PhaseKind::Recompute:
    return "forward computed again";
  default:
    return getName(kind).str();
  }
}
