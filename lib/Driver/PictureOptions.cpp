//===- PictureOptions.cpp - the options of pictures -----------------------===//
//
// `--emit=schedule --from=40 --to=80 --width=900 --title="DualPipe" -o schedule.pdf`. No option is ignored (law L14):
// what a picture does not have is refused.
//
//===----------------------------------------------------------------------===//
#include "ConvertPicture.h"
#include "Options.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Support/CommandLine.h"

using namespace stage;
using namespace stage::driver;
namespace cl = llvm::cl;
using Format = PictureOptions::Format;

// llvm::cl sorts groups by name.
cl::OptionCategory &stage::driver::getLookCategory() {
  static cl::OptionCategory category("Look", "what a step costs, whether it is right, and pictures of it:");
  return category;
}

namespace {
cl::opt<std::string>
    scheduleTimes("schedule-times",
                  cl::desc("How long units take in --emit=schedule: 'flops', or numbers for letters, as "
                           "in F=1,B=2,I=1,W=1,R=1,S=0 (default)"),
                  cl::init("F=1,B=2,I=1,W=1,R=1,S=0"), cl::value_desc("times"), cl::cat(getLookCategory()));
cl::opt<std::string> from("from",
                          cl::desc("Draw --emit=timeline or memory-timeline from this time of the step on, "
                                   "--emit=schedule from this number of units of time, or percent (default: the "
                                   "beginning); in a short window of a timeline each op is a box with its name"),
                          cl::value_desc("20ms"), cl::cat(getLookCategory()));
cl::opt<std::string> to("to",
                        cl::desc("Draw --emit=timeline, memory-timeline or schedule up to this time (default: the end "
                                 "of the step)"),
                        cl::value_desc("25ms"), cl::cat(getLookCategory()));
constexpr unsigned minWidth = 640, maxWidth = 16384;
cl::opt<unsigned> width("width",
                        cl::desc("Width of a picture in pixels (default: 1600 for --emit=timeline and "
                                 "memory-timeline, 900 for others)"),
                        cl::init(0), cl::value_desc("pixels"), cl::cat(getLookCategory()));
cl::opt<std::string> title("title", cl::desc("Title of a picture (default: the job and its plan)"),
                           cl::value_desc("text"), cl::cat(getLookCategory()));
cl::opt<std::string> layer("layer",
                           cl::desc("The layer of --emit=layer or dot, by its path (default of layer: the first)"),
                           cl::value_desc("layers.attn"), cl::cat(getLookCategory()));
} // namespace

/// `F=1,B=2`, or `flops`. What is not named stays as it is, but a backward takes what its halves take.
static bool parseScheduleTimes(llvm::StringRef text, std::optional<PhaseDurations> &times) {
  if (text == "flops") {
    times.reset();
    return true;
  }
  auto of = [&](PhaseKind kind) -> int64_t & { return (*times)[unsigned(kind)]; };
  std::string letters; // so far
  for (llvm::StringRef part : llvm::split(text, ',')) {
    auto [letter, number] = part.split('=');
    constexpr int64_t most = 1000;
    int64_t time;
    if (letter.size() != 1 || number.getAsInteger(10, time) || time < 0 || time > most)
      return false;
    std::optional<PhaseKind> kind = letter == "S" ? PhaseKind::Step : findPhase(letter.front());
    if (!kind || llvm::StringRef(letters).contains(letter))
      return false;
    letters += letter;
    if (!movesCaches(*kind))
      of(*kind) = time;
    if (isForward(*kind))
      of(PhaseKind::Forward) = of(PhaseKind::Draft) = of(PhaseKind::Decode) = time;
  }
  if (!llvm::StringRef(letters).contains('B'))
    of(PhaseKind::Backward) = of(PhaseKind::BackwardInput) + of(PhaseKind::BackwardWeight);
  return true;
}

/// A time of a step, in ticks.
static std::optional<PictureTime> readTime(const cl::opt<std::string> &option, DiagnosticEngine &diags) {
  std::optional<Rational> seconds = readQuantity(("--" + option.ArgStr).str(), option, Dimension::ofTime(), diags);
  if (!seconds)
    return std::nullopt;
  std::optional<Rational> ticks = seconds->mul(Rational::integer(ticksPerSecond));
  bool isCounted = ticks && ticks->compare(Rational::integer(maxTicks)) < 0;
  return PictureTime{isCounted ? Ticks(ticks->floor().num) : maxTicks, /*isPercent=*/false, option};
}

/// A time of a schedule: `40` units of time, or `10%` of it all.
static std::optional<PictureTime> readScheduleTime(const cl::opt<std::string> &option, bool hasUnit,
                                                   DiagnosticEngine &diags) {
  llvm::StringRef number = option;
  PictureTime time = {0, number.consume_back("%"), option};
  if (!number.getAsInteger(10, time.value) && time.value >= 0 && time.value <= (time.isPercent ? 100 : maxTicks) &&
      (time.isPercent || hasUnit))
    return time;
  diags.report(SMLoc(), diag::BadScheduleWindow)
      << ("--" + option.ArgStr).str()
      << (hasUnit ? "units of time or a percentage, as in 40 or 10%"
                  : "a percentage, because FLOPs are no unit of time, as in 10%")
      << option;
  return std::nullopt;
}

/// By the end of the file's name.
static Format findFormat(EmitKind emit, llvm::StringRef name) {
  return name.endswith(".pdf")                                          ? Format::Pdf
         : emit == EmitKind::Timeline && name.endswith(".json")         ? Format::Events
         : emit == EmitKind::MemoryTimeline && name.endswith(".csv")    ? Format::Table
         : emit == EmitKind::MemoryTimeline && name.endswith(".pickle") ? Format::Snapshot
                                                                        : Format::Svg;
}

namespace {
class PictureReader {
public:
  PictureReader(EmitKind emit, const std::string &output, DiagnosticEngine &diags)
      : emit(emit), output(output), diags(diags) {}
  PictureOptions read(const std::string &input, bool force);

private:
  bool isStep() const { return emit == EmitKind::Timeline || emit == EmitKind::MemoryTimeline; }
  bool isPicture() const {
    return isStep() || emit == EmitKind::Schedule || emit == EmitKind::Mesh || emit == EmitKind::Layer ||
           emit == EmitKind::Breakdown;
  }
  /// Without -o they are printed as text.
  bool hasText() const { return emit == EmitKind::Schedule || emit == EmitKind::Mesh; }
  void refuse(const cl::Option &option, llvm::StringRef why) {
    if (option.getNumOccurrences())
      diags.report(SMLoc(), diag::FlagWithoutEffect) << ("--" + option.ArgStr).str() << why;
  }
  void readLook();
  void readWindow();

  EmitKind emit;
  const std::string &output;
  DiagnosticEngine &diags;
  PictureOptions options;
};
} // namespace

/// `--title`, `--width`, `--layer`, `--schedule-times`.
void PictureReader::readLook() {
  const llvm::StringRef notPicture = "it is of pictures: --emit=schedule, mesh, timeline, memory-timeline, layer and "
                                     "breakdown";
  bool isDrawn = options.format == Format::Svg || options.format == Format::Pdf;
  for (const cl::Option *option : {static_cast<const cl::Option *>(&width), static_cast<const cl::Option *>(&title)})
    if (!isPicture())
      refuse(*option, notPicture);
    else if (!isDrawn)
      refuse(*option, "only a picture (.svg, .pdf) has one");
    else if (hasText() && output.empty())
      refuse(*option, "text on standard output has none; write a picture, as in -o picture.svg");
  constexpr unsigned wide = 1600, column = 900;
  options.width = width ? width : isStep() ? wide : column;
  if (width.getNumOccurrences() && (width < minWidth || width > maxWidth))
    diags.report(SMLoc(), diag::BadPictureWidth) << int64_t(minWidth) << int64_t(maxWidth) << int64_t(width);
  options.title = title;
  if (emit != EmitKind::Layer && emit != EmitKind::Dot)
    refuse(layer, "it is of --emit=layer and --emit=dot");
  options.layer = layer;
  for (const cl::opt<std::string> *option : {&title, &layer})
    if (option->getNumOccurrences() && option->empty())
      diags.report(SMLoc(), diag::EmptyOption) << ("--" + option->ArgStr).str();
  if (!isChanged(scheduleTimes))
    return;
  if (emit != EmitKind::Schedule)
    refuse(scheduleTimes, "it is of --emit=schedule");
  if (!parseScheduleTimes(scheduleTimes, options.scheduleTimes))
    diags.report(SMLoc(), diag::BadScheduleTimes) << scheduleTimes;
}

/// `--from` and `--to`.
void PictureReader::readWindow() {
  for (const cl::opt<std::string> *option : {&from, &to}) {
    if (!isStep() && emit != EmitKind::Schedule)
      refuse(*option, "it is of --emit=timeline, memory-timeline and schedule");
    else if (options.format == Format::Snapshot)
      refuse(*option, "a snapshot (.pickle) is of the whole step");
    else if (option->getNumOccurrences())
      (option == &from ? options.from : options.to) =
          isStep() ? readTime(*option, diags)
                   : readScheduleTime(*option, /*hasUnit=*/options.scheduleTimes.has_value(), diags);
  }
  int64_t begin = options.from ? options.from->value : 0;
  bool isOfOneKind = !options.from || !options.to || options.from->isPercent == options.to->isPercent;
  if (options.to && isOfOneKind && options.to->value <= begin)
    diags.report(SMLoc(), diag::EmptyWindow) << to << (options.from ? options.from->text : isStep() ? "0s" : "0");
}

PictureOptions PictureReader::read(const std::string &input, bool force) {
  options.format = findFormat(emit, output);
  readLook();
  readWindow();
  if (isPicture() && !hasText())
    options.file = "-"; // there is no text of it
  if (!isPicture() || output.empty())
    return std::move(options);
  if (output != "-" && options.format == Format::Svg && !llvm::StringRef(output).endswith(".svg"))
    diags.report(SMLoc(), diag::PictureNeedsName)
        << (emit == EmitKind::Timeline         ? ".svg or .pdf, or in .json for Perfetto"
            : emit == EmitKind::MemoryTimeline ? ".svg or .pdf, or in .csv, or in .pickle for PyTorch's memory viewer"
                                               : ".svg or .pdf")
        << output;
  if (options.format == Format::Pdf)
    findConverter(diags);
  if (checkKeepsInput(output, input, diags))
    checkReplaceable(output, force ? Existing::Replace : Existing::Keep, diags);
  options.file = output;
  return std::move(options);
}

PictureOptions stage::driver::readPicture(EmitKind emit, const std::string &input, const std::string &output,
                                          bool force, DiagnosticEngine &diags) {
  return PictureReader(emit, output, diags).read(input, force);
}
