#include <algorithm>
#include <map>

#include "tilewright/ptx/parser.h"

// Module scope: header, functions, variables, debug sections.
namespace tw::ptx {

// ---- tokens ----

void Parser::expected(const char* what) {
  const Token& t = lex_.peek();
  if (t.kind == Token::Kind::end) user_error(lex_.loc(), "expected {}, but the text ends here", what);
  user_error(lex_.loc(), "expected {}, found '{}'", what, t.text.substr(0, 64));
}

void Parser::expect(char c, const char* where) {
  if (!accept(c)) expected(tw::format("{} {}", c, where).c_str());
}

bool Parser::accept(char c) {
  if (!lex_.peek().is(c)) return false;
  lex_.next();
  return true;
}

std::string Parser::word(const char* what) {
  if (lex_.peek().kind != Token::Kind::word) expected(what);
  return std::string(lex_.next().text);
}

Type Parser::type() {
  if (lex_.peek().kind != Token::Kind::dotted) expected("a type");
  const auto t = type_from_name(lex_.peek().text.substr(1));
  if (!t) expected("a type such as .b32");
  lex_.next();
  return *t;
}

// ---- module ----

Module Parser::module() {
  header();
  while (true) {
    for (std::string& c : lex_.take_comments()) module_.items.emplace_back(Comment{std::move(c)});
    const Token t = lex_.peek();
    if (t.kind == Token::Kind::end) break;
    if (t.kind != Token::Kind::dotted) expected("a function, a variable or a directive");
    const std::string_view directive = t.text.substr(1);
    if (directive == "file") {
      file_directive();
    } else if (directive == "section") {
      section();
    } else if (directive == "pragma" || directive == "alias") {
      module_.items.emplace_back(raw_directive());
    } else if (directive == "loc") {
      user_error(lex_.loc(), ".loc stands only inside of a function");
    } else {
      auto links = linkage();
      const Token what = lex_.peek();
      const std::string_view kind =
          what.kind == Token::Kind::dotted ? what.text.substr(1) : std::string_view{};
      if (kind == "entry" || kind == "func") {
        lex_.next();
        function(std::move(links), kind == "entry");
      } else if (kind == "global" || kind == "const" || kind == "shared" || kind == "local" ||
                 kind == "param") {
        lex_.next();
        const Space space = kind == "global"   ? Space::global
                            : kind == "const"  ? Space::const_
                            : kind == "shared" ? Space::shared
                            : kind == "local"  ? Space::local
                                               : Space::param;
        for (Variable& v : variables(std::move(links), space)) module_.items.emplace_back(std::move(v));
      } else if (kind == "tex" || kind == "texref" || kind == "samplerref" || kind == "surfref") {
        user_error(lex_.loc(), "textures and surfaces are not supported");
      } else {
        expected(".entry, .func, .global, .const, .shared, .file, .section, .alias or .pragma");
      }
    }
  }
  resolve_locations();
  return std::move(module_);
}

// ".version 9.0", ".target sm_90a, debug", ".address_size 64".
void Parser::header() {
  const auto directive = [&](std::string_view name) {
    if (lex_.peek().text != name) expected(std::string(name).c_str());
    lex_.next();
  };
  directive(".version");
  const Token version = lex_.next();
  const size_t dot = version.text.find('.');
  const auto small = [](std::string_view s) {
    return !s.empty() && s.size() <= 3 &&
           std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (dot == version.text.npos || !small(version.text.substr(0, dot)) || !small(version.text.substr(dot + 1)))
    user_error(lex_.loc(version), "expected a version such as 9.0");
  module_.version_major = std::stoi(std::string(version.text.substr(0, dot)));
  module_.version_minor = std::stoi(std::string(version.text.substr(dot + 1)));
  directive(".target");
  do {
    module_.target.push_back(word("a target such as sm_90a"));
  } while (accept(','));
  if (lex_.peek().text == ".address_size") {
    lex_.next();
    const SourceLoc where = lex_.loc();
    if (integer_constant("an address size") != 64) user_error(where, "only 64-bit addresses are supported");
  }
}

// ".file 1 "kernel.cu", 1700000000, 1234".
void Parser::file_directive() {
  lex_.next();
  File file;
  if (lex_.peek().kind != Token::Kind::integer) expected("the number of the file");
  file.index = uint32_t(lex_.next().bits);
  if (lex_.peek().kind != Token::Kind::string) expected("the name of the file, in quotes");
  const Token path = lex_.next();
  file.path = std::string(path.text.substr(1, path.text.size() - 2));
  if (accept(',')) {
    const Token first = lex_.peek();
    integer_constant("a time stamp");
    expect(',', "before the size of the file");
    integer_constant("the size of the file");
    file.rest = std::string(lex_.since(first));
  }
  module_.items.emplace_back(std::move(file));
}

// Debug information is kept as it stands.
void Parser::section() {
  const Token first = lex_.next();
  while (!lex_.peek().is('{')) {
    if (lex_.peek().kind == Token::Kind::end || lex_.peek().is(';')) expected("{ to open the section");
    lex_.next();
  }
  int depth = 0;
  do {
    if (lex_.peek().kind == Token::Kind::end) expected("} to close the section");
    const Token t = lex_.next();
    depth += t.is('{') - t.is('}');
  } while (depth > 0);
  module_.items.emplace_back(Directive{std::string(lex_.since(first))});
  lex_.take_comments();
}

// A directive up to its semicolon, with single spaces.
Directive Parser::raw_directive() {
  std::string text(lex_.next().text);
  std::string_view before;
  while (!lex_.peek().is(';')) {
    const Token& t = lex_.peek();
    if (t.kind == Token::Kind::end || t.is('{') || t.is('}')) expected("; to end the directive");
    const bool tight = t.is(',') || t.is(')') || t.is(']') || t.is('[') || before == "(" || before == "[";
    if (!tight) text += ' ';
    text += t.text;
    before = lex_.next().text;
  }
  lex_.next();
  return {text + ";"};
}

std::vector<std::string> Parser::linkage() {
  std::vector<std::string> out;
  while (lex_.peek().kind == Token::Kind::dotted) {
    const std::string_view t = lex_.peek().text;
    if (t != ".visible" && t != ".extern" && t != ".weak" && t != ".common") break;
    out.emplace_back(t.substr(1));
    lex_.next();
  }
  return out;
}

// ---- functions ----

void Parser::function(std::vector<std::string> links, bool is_entry) {
  Function f;
  f.is_entry = is_entry;
  f.linkage = std::move(links);
  function_ = &f;
  scopes_.emplace_back();
  if (lex_.peek().kind == Token::Kind::dotted && lex_.peek().text.starts_with(".attribute"))
    user_error(lex_.loc(), ".attribute of a function is not supported");
  if (!is_entry && lex_.peek().is('(')) f.results = parameters("a result");
  f.name = word("the name of the function");
  scopes_.front().declare(f.name, {});
  if (lex_.peek().is('(')) f.params = parameters("a parameter");
  performance_directives(f);
  if (accept(';')) {
    f.has_body = false;
    scopes_.pop_back();
  } else {
    body(f);
    close_scope();
  }
  function_ = nullptr;
  module_.items.emplace_back(std::move(f));
}

std::vector<Variable> Parser::parameters(const char* whose) {
  std::vector<Variable> out;
  lex_.next();
  if (accept(')')) return out;
  while (true) {
    if (lex_.peek().kind != Token::Kind::dotted) expected(whose);
    out.push_back(parameter());
    if (accept(')')) return out;
    expect(',', "or ) after the parameter");
  }
}

// ".param .u64 .ptr .global .align 16 name", ".param .align 8 .b8 name[16]".
Variable Parser::parameter() {
  Variable v;
  const std::string_view space = lex_.peek().text;
  if (space != ".param" && space != ".reg") expected(".param");
  v.space = space == ".param" ? Space::param : Space::reg;
  lex_.next();
  if (lex_.peek().text == ".align") v.align = alignment();
  v.type = type();
  parameter_attributes(v);
  if (lex_.peek().text == "_") {
    v.name = "_";
    lex_.next();
    array_extents(v);
    return v;
  }
  variable_name(v);
  return v;
}

void Parser::parameter_attributes(Variable& v) {
  if (lex_.peek().text != ".ptr") return;
  std::string text(lex_.next().text);
  while (lex_.peek().kind == Token::Kind::dotted) {
    const std::string_view t = lex_.peek().text;
    if (t == ".align") {
      text += tw::format(" .align {}", alignment());
    } else if (t == ".const" || t == ".global" || t == ".local" || t == ".shared") {
      text += tw::format(" {}", lex_.next().text);
    } else {
      expected(".const, .global, .local, .shared or .align after .ptr");
    }
  }
  v.attributes.push_back(std::move(text));
}

// ".maxntid 128, 1, 1" and the like, before the body.
void Parser::performance_directives(Function& f) {
  static const std::map<std::string_view, std::pair<int, int>> known{
      // number of integers
      {".maxnreg", {1, 1}},         {".maxntid", {1, 3}},
      {".reqntid", {1, 3}},         {".minnctapersm", {1, 1}},
      {".maxnctapersm", {1, 1}},    {".noreturn", {0, 0}},
      {".explicitcluster", {0, 0}}, {".reqnctapercluster", {1, 3}},
      {".maxclusterrank", {1, 1}},  {".blocksareclusters", {0, 0}},
      {".abi_preserve", {1, 1}},    {".abi_preserve_control", {1, 1}},
      {".unified", {0, 0}}};
  while (lex_.peek().kind == Token::Kind::dotted) {
    const Token t = lex_.peek();
    if (t.text == ".pragma") {
      f.directives.push_back(raw_directive().text);
      continue;
    }
    const auto it = known.find(t.text);
    if (it == known.end()) expected("a directive such as .maxntid, or the body of the function");
    lex_.next();
    std::string text(t.text);
    for (int i = 0; i < it->second.second; ++i) {
      if (i >= it->second.first && !lex_.peek().is(',')) break;
      if (i > 0) expect(',', "between the numbers");
      text += tw::format("{}{}", i ? ", " : " ", integer_constant("a number"));
    }
    f.directives.push_back(std::move(text));
  }
}

// ---- variables ----

uint32_t Parser::alignment() {
  lex_.next();
  const SourceLoc where = lex_.loc();
  const int64_t n = integer_constant("an alignment");
  if (n < 1 || n > (1 << 20) || (n & (n - 1)) != 0)
    user_error(where, "{} is not an alignment: a power of two", n);
  return uint32_t(n);
}

std::vector<Variable> Parser::variables(std::vector<std::string> links, Space space) {
  Variable v;
  v.space = space;
  v.linkage = std::move(links);
  if (lex_.peek().text == ".attribute") {
    std::string text(lex_.next().text);
    if (!lex_.peek().is('(')) expected("( after .attribute");
    while (!lex_.peek().is(')')) {
      if (lex_.peek().kind == Token::Kind::end || lex_.peek().is(';')) expected(") after the attribute");
      text += lex_.next().text;
    }
    text += lex_.next().text;
    v.attributes.push_back(std::move(text));
  }
  if (lex_.peek().text == ".align") v.align = alignment();
  if (lex_.peek().text == ".v2" || lex_.peek().text == ".v4") v.vector = lex_.next().text == ".v2" ? 2 : 4;
  if (lex_.peek().kind == Token::Kind::dotted &&
      (lex_.peek().text == ".texref" || lex_.peek().text == ".samplerref" || lex_.peek().text == ".surfref"))
    user_error(lex_.loc(), "textures and surfaces are not supported");
  v.type = type();
  if (v.type == Type::pred) user_error(lex_.loc(), "a variable in memory cannot be of type .pred");
  if (space == Space::param) parameter_attributes(v);
  std::vector<Variable> out;
  do {
    out.push_back(v);
    variable_name(out.back());
  } while (accept(','));
  expect(';', "after the declaration");
  return out;
}

void Parser::variable_name(Variable& v) {
  const Token name = lex_.peek();
  v.name = word("a name");
  const bool is_extern = std::find(v.linkage.begin(), v.linkage.end(), "extern") != v.linkage.end();
  NameScope::Name what{v.space == Space::reg, {}};
  if (what.is_register) what.reg = add_register(*function_, v.name, v.type);
  // A variable may be declared extern, then defined.
  if (!scopes_.back().declare(v.name, what) && scopes_.size() > 1)
    user_error(lex_.loc(name), "'{}' is declared already in this scope", v.name);
  if (lex_.peek().is('<')) user_error(lex_.loc(), "only registers are declared by count");
  array_extents(v);
  if (!accept('=')) return;
  if (is_extern) user_error(lex_.loc(), "an extern variable has no initialiser");
  if (v.space != Space::global && v.space != Space::const_)
    user_error(lex_.loc(), "only .global and .const variables have initialisers");
  if (v.is_array || v.vector > 1) initialiser(v, 0);
  else v.init.push_back(initialiser_element());
}

void Parser::array_extents(Variable& v) {
  while (accept('[')) {
    v.is_array = true;
    if (accept(']')) {
      if (!v.dims.empty()) user_error(lex_.loc(), "only the first extent of an array may be left out");
      v.dims.push_back(-1);
      continue;
    }
    const SourceLoc where = lex_.loc();
    const int64_t n = integer_constant("an extent");
    if (n < 0 || n > (int64_t(1) << 40)) user_error(where, "{} is not an extent of an array", n);
    v.dims.push_back(n);
    if (v.dims.size() > 16) user_error(where, "an array of more than 16 dimensions");
    expect(']', "after the extent");
  }
}

// Flattens "{{1, 2}, {3}}"; inner lists are filled up with zeros.
void Parser::initialiser(Variable& v, size_t level) {
  const size_t levels = v.dims.size() + (v.vector > 1 ? 1 : 0);
  const auto extent = [&](size_t l) { return l < v.dims.size() ? v.dims[l] : int64_t(v.vector); };
  expect('{', "to open the initialiser");
  int64_t elements = 0;
  while (!lex_.peek().is('}')) {
    if (extent(level) >= 0 && elements == extent(level))
      user_error(lex_.loc(), "more elements than the extent {}", extent(level));
    if (level + 1 < levels) initialiser(v, level + 1);
    else v.init.push_back(initialiser_element());
    if (v.init.size() > most_elements) user_error(lex_.loc(), "this initialiser is too long");
    ++elements;
    if (!accept(',')) break;
  }
  if (!lex_.peek().is('}')) expected(", or } in the initialiser");
  lex_.next();
  if (level == 0 && levels == 1) return;
  uint64_t inner = 1;
  for (size_t l = level + 1; l < levels; ++l) inner *= uint64_t(extent(l));
  if (level > 0 && inner * uint64_t(extent(level) - elements) > most_elements)
    user_error(lex_.loc(), "this initialiser is too long");
  const bool real = v.type == Type::f32 || v.type == Type::f64;
  if (level > 0)
    v.init.resize(v.init.size() + inner * size_t(extent(level) - elements), real ? f64(0) : integer(0));
}

// A number, "symbol+8", "generic(symbol)", "0xFF00(symbol)".
Operand Parser::initialiser_element() {
  const Token t = lex_.peek();
  Symbol s;
  if (t.kind == Token::Kind::integer && lex_.at_call()) {
    s.mask = lex_.next().bits;
    expect('(', "after the mask");
  } else if (t.kind != Token::Kind::word || t.text == "WARP_SZ") {
    return {constant()};
  }
  if (lex_.peek().text == "generic") {
    lex_.next();
    expect('(', "after generic");
    s.generic = true;
  }
  const SourceLoc where = lex_.loc();
  s.name = word("the name of a variable or function");
  if (!declared(s.name)) user_error(where, "'{}' is not declared", s.name);
  if (s.generic) expect(')', "after the name");
  if (s.mask == 0) s.offset = offset();
  else expect(')', "after the name");
  return {std::move(s)};
}

// ---- source positions ----

// .file may follow the functions that refer to it.
void Parser::resolve_locations() {
  std::map<uint32_t, std::string_view> files;
  for (const auto& item : module_.items)
    if (const auto* file = std::get_if<File>(&item)) files[file->index] = intern(file->path);
  if (files.empty()) return;
  for (auto& item : module_.items) {
    auto* f = std::get_if<Function>(&item);
    if (!f) continue;
    SourceLoc current;
    for (Statement& s : f->body) {
      if (const auto* loc = std::get_if<Loc>(&s)) {
        const auto file = files.find(loc->file);
        current = file == files.end() ? SourceLoc() : SourceLoc(file->second, loc->line, loc->column);
      } else if (auto* inst = std::get_if<Instruction>(&s); inst && current) {
        inst->loc = current;
      }
    }
  }
}

Module parse(std::string_view text, std::string_view file_name) { return Parser(text, file_name).module(); }

}  // namespace tw::ptx
