//===- RequestReader.cpp - requests from lines of JSON --------------------===//
//
// A line is read with the JSON reader of Support, which refuses keys that are given
// twice and deep nesting; each of its fields is looked up in Fields.def.
//
// A message needs a place in a buffer of the engine's sources, and only the line itself is
// in memory: the buffer that is made for a message has as many empty lines before it as
// the file has lines, so that the number of the line is right.
//
//===----------------------------------------------------------------------===//
#include "LineSource.h"
#include "Timestamp.h"
#include "stage/Serving/Diagnostics.h"
#include "stage/Serving/Requests.h"
#include "stage/Support/Json.h"
#include "stage/Symbolic/Quantity.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <set>

using namespace stage;
using namespace stage::serving;
using llvm::StringRef;
using llvm::json::Value;

namespace {
enum class Meaning { Arrival, Prompt, Output, Cached, Nothing };
enum class Unit { Seconds, Milliseconds, Nanoseconds, Date, Tokens, Blocks, Any };

struct Field {
  Meaning meaning;
  StringRef name;
  Unit unit;
};

constexpr Field fields[] = {
#define FIELD(meaning, name, unit) {Meaning::meaning, name, Unit::unit},
#include "stage/Serving/Fields.def"
#undef FIELD
};

/// Faulty lines that are reported.
constexpr unsigned maxFaults = 10;

const Field *findField(StringRef name) {
  for (const Field &field : fields)
    if (field.name == name)
      return &field;
  return nullptr;
}

StringRef getName(Meaning meaning) {
  switch (meaning) {
  case Meaning::Arrival:
    return "arrival";
  case Meaning::Prompt:
    return "prompt";
  case Meaning::Output:
    return "output";
  case Meaning::Cached:
  case Meaning::Nothing:
    break;
  }
  return "cached tokens";
}

/// `'prompt', 'input_length' or ...`
std::string listNames(Meaning meaning) {
  std::vector<std::string> names;
  for (const Field &field : fields)
    if (field.meaning == meaning)
      names.push_back("'" + field.name.str() + "'");
  std::string last = names.back();
  names.pop_back();
  return llvm::join(names, ", ") + " or " + last;
}

/// A value in a message, as far as it is short.
std::string show(const Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  constexpr size_t most = 40;
  // Not within a character of several bytes.
  size_t end = most;
  while (end && text.size() > most && (text[end] & 0xC0) == 0x80)
    --end;
  return text.size() <= most ? text : text.substr(0, end) + "...";
}

class JsonRequests : public RequestReader {
public:
  JsonRequests(std::unique_ptr<LineSource> lines, StringRef path, llvm::ArrayRef<std::string> ignored,
               DiagnosticEngine &diags)
      : RequestReader(diags), lines(std::move(lines)), path(path), ignored(ignored.begin(), ignored.end()),
        unused(this->ignored) {}

  std::optional<Request> next(llvm::function_ref<bool(const Request &)> check) override {
    while (!ended) {
      std::optional<Request> request = readRequest();
      if (request && check(*request) && !numFaults)
        return request;
    }
    return std::nullopt;
  }

  SMLoc placeFault(const Request &request) override {
    ++numFaults;
    bool isShown = request.line == lines->getNumber();
    return place(request.line, isShown ? text.rtrim("\r") : "", 0);
  }

  bool hasErrors() const override { return numFaults != 0; }

private:
  /// What a line says so far.
  struct Draft {
    Request request;
    const Field *said[unsigned(Meaning::Nothing)] = {};
    bool isGood = true;
  };

  /// One request, or what is said at the end of the file.
  std::optional<Request> readRequest() {
    if (numFaults >= maxFaults) {
      diags.report(SMLoc(), diag::NoMoreIsRead) << int64_t(maxFaults);
      ended = true;
      return std::nullopt;
    }
    do {
      if (!lines->next(text)) {
        finish();
        return std::nullopt;
      }
    } while (text.trim(" \t\r").empty() && !lines->isTooLong());
    Draft draft;
    draft.request.line = lines->getNumber();
    readLine(draft);
    if (!draft.isGood) {
      numFaults++;
      return std::nullopt;
    }
    draft.request.index = numRequests++;
    return draft.request;
  }

  void finish() {
    ended = true;
    if (!lines->getError().empty()) {
      ++numFaults;
      diags.report(SMLoc(), diag::CannotReadFile) << path << lines->getError();
    } else if (numRequests == 0 && numFaults == 0) {
      ++numFaults;
      diags.report(SMLoc(), diag::NoRequests) << path;
    } else if (numFaults == 0) {
      for (const std::string &name : unused) {
        ++numFaults;
        diags.report(SMLoc(), diag::FlagWithoutEffect) << "--ignore=" + name << "no request has this field";
      }
    }
  }

  void readLine(Draft &draft) {
    std::string error;
    if (lines->isTooLong()) {
      fault(draft, "", diag::BadRequest) << "the line has more than " + std::to_string(LineSource::maxLine >> 20) +
                                                " MiB";
      return;
    }
    std::optional<Value> value = parseJson(text.trim(" \t\r"), error);
    const llvm::json::Object *object = value ? value->getAsObject() : nullptr;
    // All lines of a file of another kind are faulty.
    if (std::string other = value || numRequests || numFaults ? "" : nameOtherFormat(text); !other.empty()) {
      fault(draft, "", diag::NoRequestFile) << other;
      ended = true;
      return;
    }
    // So are those of a list that begins on the first line.
    StringRef listed = text.trim();
    bool beginsList = !value && !numRequests && !numFaults && listed.consume_front("[") &&
                      (listed.empty() || listed.ltrim().startswith("{"));
    bool isList = beginsList || (value && value->getAsArray());
    ended |= beginsList;
    if (!object) {
      fault(draft, "", diag::BadRequest) << (isList ? "this is a list: write each object on a line of its own, without "
                                                      "'[', ']' and the commas between objects"
                                             : !value ? error
                                                      : "this is none; write one as in {\"arrival\": 0.5, \"prompt\": "
                                                        "100, \"output\": 20}");
      return;
    }
    // In the order of the line, which is not that of the object.
    std::vector<std::pair<size_t, const llvm::json::Object::value_type *>> members;
    for (const auto &member : *object)
      members.emplace_back(findColumn(member.first), &member);
    llvm::sort(members, [](const auto &a, const auto &b) {
      return std::pair(a.first, StringRef(a.second->first)) < std::pair(b.first, StringRef(b.second->first));
    });
    for (const auto &member : members)
      readField(draft, member.second->first, member.second->second);
    for (Meaning meaning : {Meaning::Arrival, Meaning::Prompt, Meaning::Output})
      if (!draft.said[unsigned(meaning)] && draft.isGood)
        fault(draft, "", diag::MissingRequestField) << getName(meaning) << listNames(meaning);
    if (draft.isGood)
      settle(draft);
  }

  void readField(Draft &draft, StringRef name, const Value &value) {
    if (ignored.count(name.str())) {
      unused.erase(name.str());
      return;
    }
    const Field *field = findField(name);
    if (!field) {
      reportUnknown(draft, name);
      return;
    }
    if (field->meaning == Meaning::Nothing)
      return;
    const Field *&said = draft.said[unsigned(field->meaning)];
    if (said) {
      fault(draft, name, diag::RequestSaidTwice) << said->name << name << getName(field->meaning);
      return;
    }
    said = field;
    if (field->meaning == Meaning::Arrival)
      return readArrival(draft, *field, value);
    if (field->unit == Unit::Blocks)
      return readBlocks(draft, *field, value);
    int64_t least = field->meaning == Meaning::Cached ? 0 : 1;
    auto tokens = value.getAsInteger();
    if (!tokens || *tokens < least || *tokens > maxTokens) {
      fault(draft, name, diag::BadRequestField)
          << name
          << "a number of tokens, at least " + std::to_string(least) + " and at most " + std::to_string(maxTokens)
          << show(value);
      return;
    }
    (field->meaning == Meaning::Prompt   ? draft.request.prompt
     : field->meaning == Meaning::Output ? draft.request.output
                                         : draft.request.cached) = *tokens;
  }

  void readArrival(Draft &draft, const Field &field, const Value &value) {
    std::optional<int64_t> time = field.unit == Unit::Date ? readDate(value) : readTime(field.unit, value);
    if (!time)
      fault(draft, field.name, diag::BadRequestField)
          << field.name
          << (field.unit == Unit::Date ? "a date in UTC, as in \"2023-11-16 18:17:03.9799600\""
                                       : "a time, at least 0 and at most 9000000000 s, as in 1.5 or \"1500ms\"")
          << show(value);
    else
      draft.request.arrival = *time;
  }

  void readBlocks(Draft &draft, const Field &field, const Value &value) {
    const llvm::json::Array *blocks = value.getAsArray();
    bool isGood = blocks != nullptr;
    for (const Value &block : blocks ? llvm::makeArrayRef(blocks->data(), blocks->size()) : llvm::ArrayRef<Value>()) {
      auto number = block.getAsInteger(); // LLVM makes the largest number of what is larger
      isGood &=
          number && *number < std::numeric_limits<int64_t>::max() && *number > std::numeric_limits<int64_t>::min();
      draft.request.prefix.push_back(number ? *number : 0);
    }
    if (!isGood)
      fault(draft, field.name, diag::BadRequestField)
          << field.name << "a list of whole numbers below 2^63" << show(value);
  }

  static std::optional<int64_t> readDate(const Value &value) {
    auto text = value.getAsString();
    return text ? parseTimestamp(*text) : std::nullopt;
  }

  /// Nanoseconds: exactly of whole numbers, rounded of others. A text has a unit of its own.
  static std::optional<int64_t> readTime(Unit unit, const Value &value) {
    if (auto text = value.getAsString()) {
      std::optional<Quantity> time = parseQuantity(*text, Dimension::ofTime());
      std::optional<Rational> nanos = time ? time->value.mul(Rational::integer(1'000'000'000)) : std::nullopt;
      bool isGood = nanos && nanos->num >= 0 && nanos->compare(Rational::integer(maxTime)) <= 0;
      return isGood ? std::optional(int64_t(std::llround(nanos->toDouble()))) : std::nullopt;
    }
    int64_t scale = unit == Unit::Seconds ? 1'000'000'000 : unit == Unit::Milliseconds ? 1'000'000 : 1;
    if (auto whole = value.getAsInteger()) {
      if (*whole < 0 || *whole > maxTime / scale)
        return std::nullopt;
      return *whole * scale;
    }
    auto number = value.getAsNumber();
    if (!number || !(*number >= 0) || !(*number * double(scale) <= double(maxTime)))
      return std::nullopt;
    return std::llround(*number * double(scale));
  }

  /// What the fields say together, and with the requests above.
  void settle(Draft &draft) {
    Request &request = draft.request;
    const Field *arrival = draft.said[unsigned(Meaning::Arrival)];
    if (request.cached > request.prompt) {
      const Field *cached = draft.said[unsigned(Meaning::Cached)];
      fault(draft, cached->name, diag::BadRequestField)
          << cached->name << "at most the prompt, " + std::to_string(request.prompt) << std::to_string(request.cached);
      return;
    }
    if (arrivalField && arrivalField != arrival) {
      fault(draft, arrival->name, diag::ArrivalFieldChanges) << arrival->name << arrivalField->name;
      return;
    }
    if (!arrivalField) {
      arrivalField = arrival;
      first = latest = request.arrival;
    }
    if (request.arrival < latest) {
      fault(draft, arrival->name, diag::RequestsOutOfOrder) << formatSeconds(latest - request.arrival);
      return;
    }
    latest = request.arrival;
    request.arrival -= first;
  }

  void reportUnknown(Draft &draft, StringRef name) {
    StringRef nearest;
    unsigned best = 1 + unsigned(name.size()) / 3;
    for (const Field &field : fields)
      if (unsigned distance = name.edit_distance(field.name, /*AllowReplacements=*/true, best); distance < best) {
        best = distance;
        nearest = field.name;
      }
    DiagnosticBuilder message = fault(draft, name, diag::UnknownRequestField) << name;
    if (!nearest.empty())
      message.note(SMLoc(), diag::DidYouMean) << nearest;
  }

  /// An error in the line that was read last, at a field of it; of several the first.
  template <diag::Kind... Missing>
  IncompleteReport<Missing...> fault(Draft &draft, StringRef name, diag::Message<Missing...> message) {
    draft.isGood = false;
    return diags.report(place(lines->getNumber(), text.rtrim("\r"), name.empty() ? 0 : findColumn(name)), message);
  }

  /// Where a field is in the line; where its name is written otherwise, the line's begin.
  size_t findColumn(StringRef name) const {
    size_t at = text.find(("\"" + name + "\"").str());
    return at == StringRef::npos ? 0 : at;
  }

  SMLoc place(int64_t number, StringRef line, size_t column) {
    std::string buffer(size_t(number - 1), '\n');
    buffer += line;
    size_t at = size_t(number - 1) + column;
    unsigned id = diags.getSources().AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(buffer, path), SMLoc());
    return SMLoc::getFromPointer(diags.getSources().getMemoryBuffer(id)->getBufferStart() + at);
  }

  std::unique_ptr<LineSource> lines;
  std::string path;
  std::set<std::string> ignored, unused;
  StringRef text; ///< The line that was read last.
  const Field *arrivalField = nullptr;
  int64_t first = 0, latest = 0; ///< Arrivals, before the first is taken off.
  int64_t numRequests = 0;
  unsigned numFaults = 0;
  bool ended = false;
};
} // namespace

RequestReader::~RequestReader() = default;

std::unique_ptr<RequestReader> RequestReader::open(StringRef path, llvm::ArrayRef<std::string> ignored,
                                                   DiagnosticEngine &diags) {
  auto lines = LineSource::open(path);
  if (!lines->getError().empty()) {
    diags.report(SMLoc(), diag::CannotReadFile) << path << lines->getError();
    return nullptr;
  }
  return std::make_unique<JsonRequests>(std::move(lines), path == "-" ? "<stdin>" : path, ignored, diags);
}
