//===- Site.cpp - the pages of a site, and where their links lead ---------===//
//
// Problem: pages of docs/ link to each other, to the library's sources, and to other files of the project, as one sees
// them in a checkout. A site has other names and folders:
//
//   docs/README.md          index.html                  pages of docs/, and files that they show
//   docs/language/Ops.md    language/Ops.html
//   (std.nn)                library/nn.html             docs/library from the sources, as --markdown writes it
//   stdlib/nn.stg           source/stdlib/nn.stg.html   a file or folder outside of docs/ to which a page links
//
// Algorithm:
//   1. Read all pages of docs/.
//   2. Find the file of each link. A link that leaves docs/ adds a page with the text of the file, or with the list of
//      the folder; the links of that page come in their turn. A link that leads nowhere, or to an anchor that its page
//      lacks, is an error.
//   3. Put the target's place in the site into each link.
//   4. Order the pages for the navigation: a part for each folder, and in it the order in which the README.md of the
//      folder links to its pages. So the index decides, and there is no second list.
//
// Limits: links with a scheme, such as https, are not followed.
//
//===----------------------------------------------------------------------===//
#include "Site.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Sema/Program.h"
#include "stage/Support/Files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace stage;
using namespace stage::driver;
using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace {
/// A folder of docs/, and its title in the navigation.
struct Part {
  StringRef folder, title;
};
} // namespace

/// In the order of the navigation. Pages of docs/ itself are in two parts: the first has the index, and those to which
/// its first section links.
static constexpr Part parts[] = {
    {"", "Start"},          {"", "Guides"},        {"cookbook", "Tasks"},     {"language", "Language"},
    {"library", "Library"}, {"schema", "Outputs"}, {"internals", "Internals"}};
static constexpr const Part &startPart = parts[0], &guidePart = parts[1];

std::string stage::driver::makeRelative(StringRef from, StringRef to) {
  std::string up;
  for (size_t i = 0; i < from.count('/'); ++i)
    up += "../";
  return up + to.str();
}

static bool hasScheme(StringRef link) { return link.contains("://") || link.startswith("mailto:"); }

bool Site::read(llvm::ArrayRef<DocPage> library) {
  if (!readPages(library) || !checkLinks())
    return false;
  arrange();
  return true;
}

//===----------------------------------------------------------------------===//
// Reading pages
//===----------------------------------------------------------------------===//

/// `language/Ops.md` -> `language/Ops.html`
static std::string makeOutput(StringRef place) {
  StringRef stem = place;
  bool isPage = stem.consume_back(".md");
  if (path::filename(stem) == "README")
    return (stem.drop_back(6) + "index.html").str();
  return ((isPage ? stem : place) + ".html").str();
}

void Site::addPage(const std::string &place, std::unique_ptr<llvm::MemoryBuffer> buffer) {
  StringRef text = buffer->getBuffer(), inDocs = place, title;
  diags.getSources().AddNewSourceBuffer(std::move(buffer), SMLoc());
  bool isInDocs = inDocs.consume_front(docs + "/");
  StringRef inFolder = inDocs.contains('/') ? inDocs.split('/').first : "";
  for (const Part &part : parts)
    if (isInDocs && part.folder == inFolder)
      title = part.title;
  pages[place] = {place, isInDocs ? makeOutput(inDocs) : "source/" + place + ".html", std::make_unique<SitePage>(text),
                  text, title};
}

/// A file or a folder outside of docs/. False if there is none.
bool Site::addSource(const std::string &place) {
  std::string file = getPath(place), text, error;
  if (fs::is_directory(file)) {
    std::vector<std::string> names;
    std::error_code failure;
    for (fs::directory_iterator it(file, failure), end; !failure && it != end; it.increment(failure))
      names.push_back(path::filename(it->path()).str());
    llvm::sort(names);
    text = "# " + place + "\n\n";
    for (const std::string &name : names)
      text += ("* [" + llvm::Twine(name) + "](" + path::filename(place) + "/" + name + ")\n").str();
  } else {
    std::unique_ptr<llvm::MemoryBuffer> buffer = readFile(file, error);
    if (!buffer)
      return false;
    StringRef name = path::filename(place);
    if (name.endswith(".md")) {
      addPage(place, std::move(buffer));
      return true;
    }
    std::string fence(20, '`'); // longer than any in the file
    text = "# " + place + "\n\n" + fence + (name.endswith(".stg") ? "stg" : "text") + "\n" + buffer->getBuffer().str() +
           fence + "\n";
  }
  addPage(place, llvm::MemoryBuffer::getMemBufferCopy(text, file));
  return true;
}

bool Site::readPages(llvm::ArrayRef<DocPage> library) {
  llvm::SmallString<128> real;
  if (std::error_code error = fs::real_path(folder, real)) {
    diags.report(SMLoc(), diag::CannotReadFile) << folder << error.message();
    return false;
  }
  root = path::parent_path(real).str();
  docs = path::filename(real).str();
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(real, error), end; !error && it != end; it.increment(error)) {
    StringRef place = StringRef(it->path()).drop_front(root.size() + 1);
    if (place.endswith(".md") && !place.startswith(docs + "/library/"))
      files.push_back(place.str());
  }
  llvm::sort(files);
  for (const std::string &place : files) {
    auto buffer = readFile(getPath(place), diags);
    if (!buffer)
      return false;
    addPage(place, std::move(buffer));
  }
  for (const DocPage &page : library) {
    std::string place = docs + "/library/" + page.name;
    addPage(place, llvm::MemoryBuffer::getMemBufferCopy(page.text, getPath(place)));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Links
//===----------------------------------------------------------------------===//

/// Nothing if it leads nowhere. May add a page.
std::optional<Site::Target> Site::findTarget(const SiteFile &page, StringRef link) {
  auto [name, anchor] = link.split('#');
  llvm::SmallString<128> path(name.empty() ? StringRef(page.place) : path::parent_path(page.place));
  if (!name.empty())
    path::append(path, name);
  path::remove_dots(path, /*remove_dot_dot=*/true);
  std::string place = StringRef(path).rtrim('/').str();
  if (place.empty() || StringRef(place).startswith("..") || path::is_absolute(place))
    return std::nullopt;
  std::string index = place + "/README.md";
  if (pages.count(index) || fs::exists(getPath(index)))
    place = index;
  bool isInDocs = StringRef(place).startswith(docs + "/");
  if (!pages.count(place) && isInDocs && fs::is_regular_file(getPath(place))) {
    std::string output = place.substr(docs.size() + 1);
    copies[output] = getPath(place);
    return Target{nullptr, output, anchor.str()};
  }
  if (!pages.count(place) && (isInDocs || !addSource(place)))
    return std::nullopt;
  SiteFile &other = pages[place];
  return Target{&other, other.output, anchor.str()};
}

void Site::report(const SiteFile &page, const SiteLink &link, const std::optional<Target> &target) {
  // A link in another form is reported at the beginning of its page.
  size_t at = std::min(page.text.find("(" + link.target + ")"), page.text.find("(" + link.target + " "));
  SMLoc loc = SMLoc::getFromPointer(page.text.data() + (at == StringRef::npos ? 0 : at + 1));
  if (!target) {
    diags.report(loc, diag::BrokenLink) << link.target;
    return;
  }
  std::string file = target->page ? target->page->place : docs + "/" + target->output;
  DiagnosticBuilder error = diags.report(loc, diag::BrokenAnchor) << file << target->anchor;
  std::vector<sema::Candidate> candidates;
  if (target->page)
    for (const std::string &anchor : target->page->content->getAnchors())
      candidates.push_back({anchor, SMLoc()});
  if (const sema::Candidate *nearest = sema::findNearest(target->anchor, candidates))
    error.note(SMLoc(), diag::NearestInLibrary) << "#" + nearest->name;
}

bool Site::checkLinks() {
  unsigned errors = diags.getNumErrors();
  std::vector<std::string> places;
  for (const auto &[place, page] : pages)
    places.push_back(place);
  std::vector<std::tuple<SiteFile *, const SiteLink *, Target>> targets;
  for (size_t i = 0; i < places.size(); ++i) {
    SiteFile &page = pages[places[i]];
    for (const SiteLink &link : page.content->getLinks()) {
      if (hasScheme(link.target))
        continue;
      size_t known = pages.size();
      std::optional<Target> target = findTarget(page, link.target);
      if (pages.size() != known)
        places.push_back(target->page->place);
      if (target)
        targets.push_back({&page, &link, *target});
      else
        report(page, link, target);
    }
  }
  for (auto &[page, link, target] : targets) {
    if (!target.anchor.empty() && !(target.page && target.page->content->getAnchors().count(target.anchor)))
      report(*page, *link, target);
    bool isOnPage = StringRef(link->target).startswith("#");
    page->content->setTarget(*link, (isOnPage ? "" : makeRelative(page->output, target.output)) +
                                        (target.anchor.empty() ? "" : "#" + target.anchor));
  }
  return diags.getNumErrors() == errors;
}

void Site::arrange() {
  for (const Part &part : parts) {
    std::vector<SiteFile *> members;
    auto add = [&](SiteFile &page) {
      if (page.part == part.title && !llvm::is_contained(members, &page))
        members.push_back(&page);
    };
    std::string folder = part.folder.empty() ? docs : docs + "/" + part.folder.str();
    if (auto index = pages.find(folder + "/README.md"); index != pages.end()) {
      SiteFile &first = index->second;
      bool isStart = part.title == startPart.title;
      if (isStart)
        first.part = startPart.title;
      add(first);
      for (const SiteLink &link : first.content->getLinks()) {
        std::optional<Target> target = hasScheme(link.target) ? std::nullopt : findTarget(first, link.target);
        if (!target || !target->page)
          continue;
        bool isInFirstSection = link.section == 2; // 1 is the title of the index
        if (isStart && isInFirstSection && target->page->part == guidePart.title)
          target->page->part = startPart.title;
        add(*target->page);
      }
    }
    for (auto &[place, page] : pages)
      add(page);
    order.insert(order.end(), members.begin(), members.end());
  }
}
