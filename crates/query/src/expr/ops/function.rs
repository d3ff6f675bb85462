//! `$function`: calls JavaScript with the values of its arguments.

use crate::expr::{Expr, Op, ParseCtx, Scope, Val, parts};
use crate::script::Script;
use pando_base::{Error, Result};
use pando_bson::Value;

#[derive(Clone)]
struct Function {
    script: Script,
    args: Expr,
}

pub(in crate::expr) fn parse(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        let text = format!("$function requires an object as an argument, found: {}", v.type_name());
        return Err(Error::location(31260, text));
    };
    let body = d.get("body").ok_or_else(|| Error::location(31261, "The body function must be specified."))?;
    let body = p.parse(body)?;
    let body = body
        .as_const()
        .ok_or_else(|| Error::location(31432, "The body function must be a constant expression"))?;
    let script = Script::of(body.value())
        .ok_or_else(|| Error::location(31262, "The body function must evaluate to type string or code"))?;
    let args = d.get("args").ok_or_else(|| Error::location(31263, "The args field must be specified."))?;
    let args = p.parse(args)?;
    match d.get("lang").ok_or_else(|| Error::location(31418, "The lang field must be specified."))? {
        Value::String("js") => Ok(Expr::Op(Box::new(Function { script, args }))),
        _ => Err(Error::location(31419, "Currently the only supported language specifier is 'js'.")),
    }
}

impl Op for Function {
    fn name(&self) -> &'static str {
        "$function"
    }
    fn stays(&self) -> bool {
        true
    }
    fn runs_scripts(&self) -> bool {
        true
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let args = self.args.eval(scope)?;
        let args =
            args.as_array().ok_or_else(|| Error::location(31266, "The args field must be of type array"))?;
        let answer = self.script.call(args, scope.ctx)?;
        Ok(Val::option(answer.get("")).into_owned())
    }
    parts!(args);
}
