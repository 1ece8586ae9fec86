//! Label selectors, parsed as by kube-apiserver, with its error messages.

use crate::names::{label_value, qualified};
use crate::selector::Demand;
use std::fmt;

/// Why a selector is refused, in the words of kube-apiserver.
#[derive(Debug)]
pub(crate) struct Malformed(String);

impl Malformed {
    fn found(token: &Token, expected: &str) -> Self {
        Self(format!("found '{}', expected: {expected}", token.text()))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Sign(&'static str),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Token::Word(word) => word,
            Token::Sign(sign) => sign,
            Token::End => "",
        }
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self, Token::Sign(have) if *have == sign)
    }
}

const SIGNS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

/// Returns the demands of a selector, or why it is refused.
pub(crate) fn parse(text: &str) -> Result<Vec<Demand>, Malformed> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut demands = Vec::new();
    loop {
        match parser.peek() {
            Token::End => return Ok(demands),
            Token::Word(_) | Token::Sign("!") => {
                let demand =
                    parser.requirement().map_err(|why| Malformed(format!("unable to parse requirement: {why}")))?;
                demands.push(demand);
            }
            other => return Err(Malformed::found(&other, "!, identifier, or 'end of string'")),
        }
        match parser.next() {
            Token::End => return Ok(demands),
            Token::Sign(",") => match parser.peek() {
                Token::Word(_) | Token::Sign("!") => {}
                other => return Err(Malformed::found(&other, "identifier after ','")),
            },
            other => return Err(Malformed::found(&other, "',' or 'end of string'")),
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            let end = rest.find(|char: char| char.is_whitespace() || "=!(),><".contains(char)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Token {
        self.tokens.get(self.at).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned().unwrap_or(Token::End)
    }

    fn requirement(&mut self) -> Result<Demand, Malformed> {
        let mut token = self.next();
        let absent = token.is("!");
        if absent {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(Malformed::found(&token, "identifier"));
        };
        if let Some(why) = qualified(&key).first() {
            return Err(Malformed(format!("<nil>: Invalid value: {key:?}: {why}")));
        }
        if absent {
            return Ok(Demand::HasNot(key));
        }
        if self.peek() == Token::End || self.peek().is(",") {
            return Ok(Demand::Has(key));
        }
        let operator = self.next();
        let values = match operator.text() {
            "in" | "notin" => self.values()?,
            "=" | "==" | "!=" | ">" | "<" => vec![self.value()?],
            _ => return Err(Malformed::found(&operator, "in, notin, =, ==, !=, gt, lt")),
        };
        let number = || {
            let refused = "for 'Gt', 'Lt' operators, the value must be an integer";
            let why = |_| Malformed(format!("values[0]: Invalid value: {:?}: {refused}", values[0]));
            values[0].parse().map_err(why)
        };
        let demand = match operator.text() {
            "in" => Demand::In(key.clone(), values.clone()),
            "notin" => Demand::NotIn(key.clone(), values.clone()),
            "!=" => Demand::IsNot(key.clone(), values[0].clone()),
            ">" => Demand::Above(key.clone(), number()?),
            "<" => Demand::Below(key.clone(), number()?),
            _ => Demand::Is(key.clone(), values[0].clone()),
        };
        for (index, value) in values.iter().enumerate() {
            if let Some(why) = label_value(value).first() {
                return Err(Malformed(format!("values[{index}][{key}]: Invalid value: {value:?}: {why}")));
            }
        }
        Ok(demand)
    }

    /// Returns the value after an operator; a missing value is empty.
    fn value(&mut self) -> Result<String, Malformed> {
        if self.peek() == Token::End || self.peek().is(",") {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(Malformed::found(&other, "identifier")),
        }
    }

    /// Returns the values in parentheses; an omitted value is empty.
    fn values(&mut self) -> Result<Vec<String>, Malformed> {
        let open = self.next();
        if !open.is("(") {
            return Err(Malformed(format!("found '{}' expected: '('", open.text())));
        }
        let mut values = Vec::new();
        loop {
            let value = match self.peek() {
                Token::Word(word) => {
                    self.at += 1;
                    word
                }
                Token::Sign("," | ")") => String::new(),
                other if values.is_empty() => {
                    return Err(Malformed::found(&other, "',', ')' or identifier"));
                }
                other => return Err(Malformed::found(&other, "',', or identifier")),
            };
            values.push(value);
            match self.next() {
                Token::Sign(",") => {}
                Token::Sign(")") => return Ok(values),
                other => return Err(Malformed::found(&other, "',' or ')'")),
            }
        }
    }
}
