//===- Value.cpp - compile-time values and environments -------------------===//
#include "stage/Sema/Value.h"

using namespace stage;
using namespace stage::sema;

CTValue CTValue::integer(int64_t value) {
  CTValue result;
  result.kind = Kind::Size;
  result.integer_ = value;
  return result;
}

CTValue CTValue::size(Size size) {
  if (std::optional<int64_t> value = size.getInteger())
    return integer(*value);
  CTValue result;
  result.kind = Kind::Size;
  result.size_ = size;
  return result;
}

CTValue CTValue::real(double value, Size exact) {
  CTValue result;
  result.kind = Kind::Real;
  result.real_ = value;
  result.size_ = exact;
  return result;
}

CTValue CTValue::quantity(Size value, Dimension dimension) {
  CTValue result;
  result.kind = Kind::Quantity;
  result.size_ = value;
  result.dimension = dimension;
  return result;
}

CTValue CTValue::boolean(bool value, Size margin) {
  CTValue result;
  result.kind = Kind::Bool;
  result.integer_ = value;
  result.size_ = margin;
  return result;
}

CTValue CTValue::string(StringRef text) {
  CTValue result;
  result.kind = Kind::String;
  result.text = text;
  return result;
}

CTValue CTValue::word(StringRef name) {
  CTValue result;
  result.kind = Kind::Word;
  result.text = name;
  return result;
}

CTValue CTValue::decl(const ast::Decl *decl) { return CTValue::decl(decl, {}); }

CTValue CTValue::decl(const ast::Decl *decl, std::vector<NamedValue> arguments) {
  CTValue result;
  result.kind = Kind::Decl;
  result.pointer = decl;
  if (!arguments.empty())
    result.arguments = std::make_shared<const std::vector<NamedValue>>(std::move(arguments));
  return result;
}

static std::shared_ptr<const std::vector<CTValue>> share(std::vector<CTValue> elements) {
  return std::make_shared<const std::vector<CTValue>>(std::move(elements));
}

CTValue CTValue::list(std::vector<CTValue> elements) {
  CTValue result;
  result.kind = Kind::List;
  result.elements = share(std::move(elements));
  return result;
}

CTValue CTValue::tuple(std::vector<CTValue> elements) {
  CTValue result;
  result.kind = Kind::Tuple;
  result.elements = share(std::move(elements));
  return result;
}

CTValue CTValue::range(CTValue begin, CTValue end) {
  CTValue result;
  result.kind = Kind::Range;
  result.elements = share({std::move(begin), std::move(end)});
  return result;
}

CTValue CTValue::axes(std::vector<CTValue> names, int64_t ranks) {
  CTValue result;
  result.kind = Kind::Axes;
  result.integer_ = ranks;
  result.elements = share(std::move(names));
  return result;
}

CTValue CTValue::function(const ast::FnStmt *fn) {
  CTValue result;
  result.kind = Kind::Function;
  result.pointer = fn;
  return result;
}

CTValue CTValue::foreign(void *pointer) {
  CTValue result;
  result.kind = Kind::Foreign;
  result.pointer = pointer;
  return result;
}

std::optional<int64_t> CTValue::getInteger() const {
  if (kind != Kind::Size || size_)
    return std::nullopt;
  return integer_;
}

Size CTValue::getSize(SizeContext &sizes) const {
  if (kind == Kind::Size && !size_)
    return sizes.constant(integer_);
  return size_;
}

ArrayRef<NamedValue> CTValue::getArguments() const {
  return arguments ? ArrayRef<NamedValue>(*arguments) : ArrayRef<NamedValue>();
}

ArrayRef<CTValue> CTValue::getElements() const { return elements ? ArrayRef<CTValue>(*elements) : ArrayRef<CTValue>(); }

StringRef CTValue::describeKind() const {
  switch (kind) {
  case Kind::None:
    return "none";
  case Kind::Size:
    return "a size";
  case Kind::Real:
    return "a real number";
  case Kind::Quantity:
    return "a quantity";
  case Kind::Bool:
    return "true or false";
  case Kind::String:
    return "text";
  case Kind::Word:
    return "a word";
  case Kind::Decl:
    return "a declaration";
  case Kind::List:
    return "a list";
  case Kind::Tuple:
    return "a tuple";
  case Kind::Range:
    return "a range";
  case Kind::Function:
    return "a function";
  case Kind::Axes:
    return "axes";
  case Kind::Foreign:
    return "a tensor";
  }
  return "";
}

const CTValue *Environment::findOwn(StringRef name) const {
  if (!positions.empty()) {
    auto found = positions.find(name);
    return found == positions.end() ? nullptr : &names[found->second].second;
  }
  for (const auto &[own, value] : names)
    if (own == name)
      return &value;
  return nullptr;
}

void Environment::define(StringRef name, CTValue value) {
  if (const CTValue *own = findOwn(name)) {
    *const_cast<CTValue *>(own) = std::move(value);
    return;
  }
  names.emplace_back(name, std::move(value));
  constexpr size_t fewNames = 16;
  if (names.size() == fewNames)
    for (unsigned i = 0; i < names.size(); ++i)
      positions[names[i].first] = i;
  else if (names.size() > fewNames)
    positions[name] = names.size() - 1;
}

const CTValue *Environment::find(StringRef name) const {
  for (const Environment *scope = this; scope; scope = scope->parent)
    if (const CTValue *value = scope->findOwn(name))
      return value;
  return nullptr;
}

const Environment *Environment::findScope(StringRef name) const {
  const Environment *scope = this;
  while (scope && !scope->findOwn(name))
    scope = scope->parent;
  return scope;
}
