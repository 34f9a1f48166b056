//! Lua as Redis embeds it: version 5.1, few libraries, no new globals, `redis.call` and `redis.pcall`.

use std::cell::RefCell;
use std::rc::Rc;

use leader_core::testing::redis_script::Reply as Answer;
use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value};

use super::server::{Reply, Server};

/// A script, ready to run against a server.
#[derive(Debug)]
pub struct Interpreter {
    lua: Lua,
    run: Function,
    server: Rc<RefCell<Server>>,
    /// The keys that the script was given.
    declared: Rc<RefCell<Vec<String>>>,
}

/// What stands around a script. It gets the script, and how a command is executed: whether that failed, and the reply.
const AROUND: &str = r"
local script, execute = ...
redis = {error_reply = function(text) return {err = text} end}
function redis.call(...)
  local failed, reply = execute(...)
  if failed then error(reply) end
  return reply
end
function redis.pcall(...)
  local _, reply = execute(...)
  return reply
end
-- What is caught of an error with a code is its text.
local native = pcall
local function caught(done, first, ...)
  if not done and type(first) == 'table' and type(first.err) == 'string' then first = first.err end
  return done, first, ...
end
function pcall(...) return caught(native(...)) end
for _, name in ipairs({'print', 'dofile', 'loadfile', 'require', 'module', 'package', 'newproxy'}) do _G[name] = nil end
setmetatable(_G, {
  __index = function(_, name) error('Script attempted to access nonexistent global variable ' .. tostring(name)) end,
  __newindex = function(_, name) error('Attempt to modify a readonly table: ' .. tostring(name)) end,
})
return function(keys, arguments)
  rawset(_G, 'KEYS', keys)
  rawset(_G, 'ARGV', arguments)
  local done, answer = native(script)
  if done then return answer end
  return type(answer) == 'table' and answer or {err = tostring(answer)}
end
";

impl Interpreter {
    /// # Panics
    /// If the text is not Lua.
    #[must_use]
    pub fn new(script: &str, server: Server) -> Self {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::default()).expect("these libraries are safe");
        let (server, declared) = (Rc::new(RefCell::new(server)), Rc::new(RefCell::new(Vec::new())));
        let execute = {
            let (server, declared) = (Rc::clone(&server), Rc::clone(&declared));
            move |lua: &Lua, arguments: MultiValue| {
                let arguments: Vec<String> = arguments.iter().map(argument).collect();
                for key in Server::keys_of(&arguments) {
                    assert!(declared.borrow().contains(key), "{arguments:?}: a key that the script was not given");
                }
                let reply = server.borrow_mut().call(&arguments);
                Ok((matches!(reply, Reply::Error(_)), to_lua(lua, &reply)?))
            }
        };
        let execute = lua.create_function(execute).expect("a function");
        let script = lua.load(script).set_name("@user_script").into_function().expect("the script is Lua");
        let run = lua.load(AROUND).call((script, execute)).expect("what stands around a script is Lua");
        Self { lua, run, server, declared }
    }

    /// The server.
    pub fn server(&self) -> std::cell::RefMut<'_, Server> {
        self.server.borrow_mut()
    }

    /// Runs the script; what follows its name in a call is the number of keys, the keys, and the arguments.
    ///
    /// # Errors
    /// The script's error.
    ///
    /// # Panics
    /// If the script touches a key that it was not given.
    pub fn eval(&self, mut following: Vec<String>) -> Result<Answer, String> {
        let count: usize = following[0].parse().expect("the number of keys");
        let arguments = following.split_off(1 + count);
        following.remove(0);
        let table = |texts: &[String]| self.lua.create_sequence_from(texts.iter().map(String::as_str));
        let (keys, arguments) = (table(&following).expect("a table"), table(&arguments).expect("a table"));
        *self.declared.borrow_mut() = following;
        self.server().begin();
        let answer: Value = self.run.call((keys, arguments)).expect("errors are caught");
        from_lua(&answer)
    }
}

fn argument(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_str().expect("text").to_owned(),
        Value::Integer(number) => number.to_string(),
        other => panic!("{other:?}: a command's arguments are texts and whole numbers"),
    }
}

fn to_lua(lua: &Lua, reply: &Reply) -> mlua::Result<Value> {
    let table_with = |field: &str, text: &str| -> mlua::Result<Value> {
        let table = lua.create_table()?;
        table.raw_set(field, text)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Nil => Ok(Value::Boolean(false)),
        Reply::Integer(number) => Ok(Value::Number(*number as f64)),
        Reply::Text(text) => lua.create_string(text).map(Value::String),
        Reply::Done => table_with("ok", "OK"),
        Reply::Error(text) => table_with("err", text),
        Reply::List(replies) => {
            let replies: Vec<_> = replies.iter().map(|reply| to_lua(lua, reply)).collect::<mlua::Result<_>>()?;
            lua.create_sequence_from(replies).map(Value::Table)
        }
    }
}

fn from_lua(value: &Value) -> Result<Answer, String> {
    Ok(match value {
        Value::Nil | Value::Boolean(false) => Answer::Nil,
        Value::Boolean(true) => Answer::Integer(1),
        Value::Integer(number) => Answer::Integer(*number),
        Value::Number(number) => Answer::Integer(*number as i64),
        Value::String(text) => Answer::Text(text.to_str().expect("text").to_owned()),
        Value::Table(table) => {
            if let Some(error) = text_in(table, "err") {
                return Err(error);
            }
            if let Some(status) = text_in(table, "ok") {
                return Ok(Answer::Text(status));
            }
            let elements = table.sequence_values::<Value>().map(|element| from_lua(&element.expect("an element")));
            Answer::List(elements.collect::<Result<_, _>>()?)
        }
        other => panic!("{other:?}: no reply of a script"),
    })
}

fn text_in(table: &Table, field: &str) -> Option<String> {
    table.raw_get::<Option<String>>(field).expect("a text")
}
