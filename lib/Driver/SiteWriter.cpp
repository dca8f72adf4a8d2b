//===- SiteWriter.cpp - the documentation as a site -----------------------===//
//
// Problem: a reader looks for a word in more than a hundred pages that lie in six folders. `stagec doc --html=site`
// writes them as HTML with navigation and a search that need no server: site/index.html works from a disk.
//
//   index.html, language/Ops.html, ...   the pages (Site.cpp), each in the template docs/site/page.html
//   search-index.js                      title, heading and text of each section
//   site.css, site.js                    docs/site
//
// The same pages give the same bytes: pages are in the order of their places, and none has a date.
//
// Limits: files of an earlier site that this one does not have are left alone.
//
//===----------------------------------------------------------------------===//
#include "Options.h"
#include "Site.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Support/Files.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace stage;
using namespace stage::driver;
using llvm::StringRef;

static std::string makeNavigation(const Site &site, const SiteFile &current) {
  std::string html;
  StringRef part;
  for (const SiteFile *page : site.getOrder()) {
    if (page->part != part) {
      html += part.empty() ? "" : "</ul></details>\n";
      part = page->part;
      html += "<details" + std::string(part == current.part ? " open" : "") + "><summary>" + escapeHtml(part) +
              "</summary><ul>\n";
    }
    html += "<li><a href=\"" + makeRelative(current.output, page->output) + "\"" +
            (page == &current ? " aria-current=\"page\"" : "") + ">" + escapeHtml(page->content->getTitle()) +
            "</a></li>\n";
  }
  return html + (part.empty() ? "" : "</ul></details>\n");
}

/// Links to the headings of the second level.
static std::string makeContents(const SiteFile &page) {
  std::string html;
  for (const SiteSection &section : page.content->getSections())
    if (section.level == 2)
      html += "<li><a href=\"#" + escapeHtml(section.anchor) + "\">" + escapeHtml(section.title) + "</a></li>\n";
  return html.empty() ? "" : "<h2>On this page</h2><ul>\n" + html + "</ul>\n";
}

/// `searchIndex = {"pages": [[output, title, part]], "sections": [[page, anchor, title, text]]}`: a script, because a
/// page on a disk may not read other files.
static std::string makeIndex(const Site &site) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "searchIndex = ";
  llvm::json::OStream json(os);
  json.object([&] {
    json.attributeArray("pages", [&] {
      for (const SiteFile *page : site.getOrder())
        json.array([&] {
          for (StringRef field : {StringRef(page->output), page->content->getTitle(), page->part})
            json.value(field);
        });
    });
    json.attributeArray("sections", [&] {
      for (const auto &each : llvm::enumerate(site.getOrder()))
        for (const SiteSection &section : each.value()->content->getSections()) {
          llvm::SmallVector<StringRef, 64> words;
          llvm::SplitString(section.text, words);
          if (words.empty() && section.title.empty())
            continue;
          json.array([&] {
            json.value(int64_t(each.index()));
            for (const std::string &field : {section.anchor, section.title, llvm::join(words, " ")})
              json.value(field);
          });
        }
    });
  });
  os << ";\n";
  return os.str();
}

/// Puts values into the place of `{{name}}`.
static std::string fill(StringRef text, const std::map<StringRef, std::string> &values) {
  std::string filled;
  while (!text.empty()) {
    auto [before, rest] = text.split("{{");
    auto [name, behind] = rest.split("}}");
    auto value = values.find(name);
    filled += before.str() + (value == values.end() ? "" : value->second);
    text = behind;
  }
  return filled;
}

/// False after a report.
static bool write(const std::string &folder, StringRef output, StringRef text, DiagnosticEngine &diags) {
  llvm::SmallString<128> file(folder);
  llvm::sys::path::append(file, output);
  if (std::error_code error = llvm::sys::fs::create_directories(llvm::sys::path::parent_path(file))) {
    diags.report(SMLoc(), diag::CannotWriteFile) << file << error.message();
    return false;
  }
  return writeFile(file, text, Existing::Replace, diags);
}

bool stage::driver::writeSite(const DocCommand &command, llvm::ArrayRef<DocPage> library, DiagnosticEngine &diags) {
  auto pattern = readFile(command.assets + "/page.html", diags);
  Site site(command.docs, diags);
  if (!pattern || !site.read(library))
    return false;
  for (const auto &[place, page] : site.getPages()) {
    std::string html = fill(pattern->getBuffer(), {{"title", escapeHtml(page.content->getTitle())},
                                                   {"root", makeRelative(page.output, "")},
                                                   {"navigation", makeNavigation(site, page)},
                                                   {"contents", makeContents(page)},
                                                   {"body", page.content->print()}});
    if (!write(command.site, page.output, html, diags))
      return false;
  }
  std::map<std::string, std::string> copies = site.getCopies();
  for (const char *name : {"site.css", "site.js"})
    copies[name] = command.assets + "/" + name;
  for (const auto &[output, file] : copies) {
    auto buffer = readFile(file, diags);
    if (!buffer || !write(command.site, output, buffer->getBuffer(), diags))
      return false;
  }
  if (!write(command.site, "search-index.js", makeIndex(site), diags))
    return false;
  llvm::errs() << "ok: " << site.getPages().size() << " pages, begin with " << command.site << "/index.html\n";
  return true;
}
