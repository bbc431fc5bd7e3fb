"""Every library, as expressions that must be true and expressions that must fail when evaluated."""

from __future__ import annotations

import pytest

from dray import cel

TRUE = {
    "numbers": [
        "7 / 2 == 3 && -7 / 2 == -3 && 7 % -3 == 1 && -7 % 3 == -1",
        "7u / 2u == 3u && 7u % 2u == 1u && 2u - 1u == 1u",
        "1.0 / 0.0 > 1e308 && -1.0 / 0.0 < -1e308 && 0.0 / 0.0 != 0.0 / 0.0",
        "int(2.9) == 2 && int(-2.9) == -2 && uint(2.9) == 2u && double('1.5') == 1.5 && int('-5') == -5",
        "string(1e6) == '1e+06' && string(123456.0) == '123456'",
        "string(0.00001) == '1e-05' && string(-0.5) == '-0.5'",
        "string(18446744073709551615u) == '18446744073709551615' && bool('T') && !bool('0')",
        "9223372036854775807 < 9223372036854775808.0 || 9223372036854775807 == dyn(9223372036854775807.0)",
        "dyn(1) == dyn(1u) && dyn(1) == dyn(1.0) && dyn(true) != dyn(1)",
    ],
    "strings": [
        "'héllo'.size() == 5 && 'héllo'.charAt(1) == 'é' && 'ab'.charAt(2) == ''",
        "'tacocat'.indexOf('c', 3) == 4 && 'tacocat'.lastIndexOf('t') == 6 && 'tacocat'.lastIndexOf('a', 3) == 1",
        "'a'.indexOf('') == 0 && 'abc'.lastIndexOf('') == 3 && 'abc'.indexOf('', 9) == 3",
        "'aXÉ'.lowerAscii() == 'axÉ' && 'axé'.upperAscii() == 'AXé'",
        "'a-b-c'.replace('-', '+') == 'a+b+c'",
        "'a-b-c'.replace('-', '', 1) == 'ab-c' && 'ab'.replace('', '.') == '.a.b.'",
        "'a,b,c'.split(',') == ['a', 'b', 'c']",
        "'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'ab'.split('') == ['a', 'b']",
        "'abc'.split('', 2) == ['a', 'bc'] && 'a'.split(',', 0) == [] && ''.split(',') == ['']",
        "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco'",
        "' \\u00a0x\\u2003'.trim() == 'x' && ['a', 'b'].join('-') == 'a-b' && [].join() == ''",
        "strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'",
        "'abc'.contains('b') && 'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'Z' < 'a'",
        "string(b'abc') == 'abc' && bytes('é').size() == 2 && b'a' + b'b' == b'ab'",
    ],
    "format": [
        "'%s %s %s'.format(['a', true, null]) == 'a true null'",
        "'%d %d %b %o %x %X'.format([1, 2u, 5, 8, 255, 255]) == '1 2 101 10 ff FF'",
        "'%x %b'.format(['hi', true]) == '6869 1'",
        "'%f %.2f'.format([1234.5, 0.125]) == '1,234.500000 0.12'",
        "'%e'.format([1052.032911275]) == '1.052033\\u202f×\\u202f10⁰³'",
        "'%f'.format(['NaN']) == 'NaN' && '%f'.format(['-Infinity']) == '-∞'",
        "'%s'.format([[1, 2.5, 'a\\n', duration('1s')]]) == '[1, 2.500000, \"a\\\\n\", duration(\"1s\")]'",
        "'%s'.format([{'b': 1, 'a': [true]}]) == '{\"a\":[true], \"b\":1}' && '100%%'.format([]) == '100%'",
        "'%s %s'.format([int, timestamp('2024-01-01T00:00:00Z')]) == 'int 2024-01-01T00:00:00Z'",
    ],
    "regular expressions": [
        "'abc'.matches('^a.c$') && !'abc'.matches('^b') && matches('abc', '(?i)ABC')",
        "'a1b22'.find('[0-9]+') == '1' && 'abc'.find('[0-9]') == ''",
        "'a1b22c333'.findAll('[0-9]+') == ['1', '22', '333'] && 'a1b22'.findAll('[0-9]+', 1) == ['1']",
        "'aébé'.findAll('é') == ['é', 'é'] && 'ab'.findAll('x*') == ['', '', ''] && 'a'.findAll('a', 0) == []",
        "'aab'.findAll('a*') == ['aa', '']",
    ],
    "lists": [
        "[1, 2, 3][1] == 2 && dyn([1, 2])[1.0] == 2 && dyn([1, 2])[1u] == 2",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2, 3]].flatten() == [1, 2, 3]",
        "[[1], [2]].map(x, dyn([x])).flatten(2) == [1, 2]",
        "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sortBy(s, s) == ['a', 'b'] && [1, 2].sortBy(n, -n) == [2, 1]",
        "lists.range(3) == [0, 1, 2] && [1, 2].reverse() == [2, 1] && [1, 1, 2, 1].distinct() == [1, 2]",
        "[dyn(1), dyn(1.0), dyn(true), dyn('1')].distinct().size() == 3",
        "[1, 2].isSorted() && ![2, 1].isSorted() && [1, 2].sum() == 3 && [].sum() == 0",
        "[1, 3, 2].max() == 3 && ['b', 'a'].min() == 'a' && [duration('1s')].sum() == duration('1s')",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1",
        "[1] + [2] + [3] == [1, 2, 3] && 2 in [1] + [2] && ([1] + [2])[1] == 2",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && sets.intersects([1, 2], [2, 3])",
    ],
    "comprehensions": [
        "[1, 2].all(x, x > 0) && [1, 2].exists(x, x > 1) && [1, 2].exists_one(x, x > 1)",
        "[1, 2].map(x, x * 2) == [2, 4] && [1, 2].map(x, x > 1, x) == [2] && [1, 2].filter(x, x > 1) == [2]",
        "{'a': 1}.all(k, k == 'a') && {'a': 1}.map(k, k) == ['a']",
        "[1, 2].all(i, v, v == i + 1) && {'a': 1}.exists(k, v, k == 'a' && v == 1) && [1].existsOne(i, v, v == 1)",
        "[3].transformList(i, v, i + v) == [3] && {'a': 1}.transformList(k, v, v > 1, k) == []",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2} && [5].transformMap(i, v, v) == {0: 5}",
        "{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'}",
        "[0, 1].exists(x, 1 / x == 1) && ![0, 1].all(x, 1 / x == 2)",
        "cel.bind(x, [1, 2], x.map(y, y + x[0])) == [2, 3]",
    ],
    "maps": [
        "{'a': 1}.a == 1 && {'a': 1}['a'] == 1 && 'a' in {'a': 1} && has({'a': 1}.a) && !has({'a': 1}.b)",
        "{1: 'a'}[1] == 'a' && dyn({1: 'a'})[1u] == 'a' && dyn({1u: 'a'})[1.0] == 'a' && !(true in dyn({1: 'a'}))",
        "{'a': 1, 'b': 2} == {'b': 2, 'a': 1} && {'a': 1} != {'a': 2}",
    ],
    "optional": [
        "optional.of(1).value() == 1",
        "optional.none().orValue(2) == 2 && optional.none().or(optional.of(3)).value() == 3",
        "!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue([1]).hasValue()",
        "optional.of(1).optMap(x, x + 1).value() == 2",
        "optional.of(1).optFlatMap(x, optional.none()) == optional.none()",
        "{'a': {'b': 1}}.?a.b == optional.of(1) && !{'a': 1}.?b.hasValue() && [1, 2][?5] == optional.none()",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && ![].first().hasValue()",
        "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(2)].unwrapOpt() == [2]",
    ],
    "times": [
        "duration('1h30m') == duration('90m')",
        "duration('-1.5s') < duration('0s') && duration('1s') + duration('1s') == duration('2s')",
        "string(duration('1h0.5s')) == '3600.5s'",
        "duration('1h').getMinutes() == 60 && duration('1.5s').getMilliseconds() == 1500",
        "timestamp('2024-01-02T03:04:05Z').getFullYear() == 2024 && timestamp('2024-01-02T03:04:05Z').getMonth() == 0",
        "[timestamp('0001-01-01T00:00:00Z')].all(t, t.getFullYear('-08:00') == 0 && t.getDate('-08:00') == 31)",
        "[timestamp('9999-12-31T23:00:00Z')].all(t, t.getFullYear('+02:00') == 10000 && t.getDayOfWeek('+02:00') == 6)",
        "timestamp('2024-01-02T03:04:05Z').getDate() == 2 && timestamp('2024-01-02T03:04:05Z').getDayOfMonth() == 1",
        "timestamp('2024-01-02T03:04:05Z').getDayOfWeek() == 2",
        "timestamp('2024-12-31T00:00:00Z').getDayOfYear() == 365",
        "timestamp('2024-01-02T03:04:05.678Z').getMilliseconds() == 678",
        "timestamp('2024-01-02T23:00:00Z').getHours('+02:00') == 1",
        "string(timestamp('2024-01-02T03:04:05.10+01:00')) == '2024-01-02T03:04:05.1+01:00'",
        "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
        "timestamp(0) + duration('1s') == timestamp(1) && int(timestamp('1970-01-01T00:00:10Z')) == 10",
    ],
    "quantities": [
        "quantity('1Gi') == quantity('1024Mi') && quantity('1').compareTo(quantity('1000m')) == 0",
        "quantity('2').isGreaterThan(quantity('1'))",
        "quantity('1').isLessThan(quantity('2')) && sign(quantity('-1')) == -1",
        "quantity('1').add(quantity('1')) == quantity('2') && quantity('3').sub(1).asInteger() == 2",
        "quantity('2') != quantity('1').add(1)",
        "isQuantity('1Gi') && !isQuantity('1p')",
        "quantity('1500m').asApproximateFloat() == 1.5 && !quantity('1500m').isInteger()",
    ],
    "versions": [
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "semver('1.0.0-alpha').isLessThan(semver('1.0.0')) && semver('1.0.0+a') == semver('1.0.0+b')",
        "semver('v1.2', true) == semver('1.2.0') && isSemver('1', true) && !isSemver('1') && !isSemver('01.0.0')",
        "semver('2.0.0').compareTo(semver('10.0.0')) == -1 && semver('18446744073709551615.0.0').major() == -1",
    ],
    "addresses": [
        "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6",
        "ip('127.0.0.1').isLoopback() && ip('::').isUnspecified()",
        "ip('224.0.0.1').isLinkLocalMulticast()",
        "ip('169.254.1.1').isLinkLocalUnicast() && ip('8.8.8.8').isGlobalUnicast()",
        "isIP('::1') && !isIP('::ffff:1.2.3.4') && !isIP('1.2.3') && !isIP('fe80::1%eth0') && !isIP('01.2.3.4')",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0::1') && string(ip('0:0::1')) == '::1'",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsIP(ip('10.1.2.3'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
        "cidr('::/0').prefixLength() == 0 && string(cidr('10.1.2.3/8')) == '10.1.2.3/8' && !isCIDR('10.0.0.0/33')",
    ],
    "urls": [
        "url('https://u:p@example.com:80/a%20b?x=1&y=2&x=3#f').getHost() == 'example.com:80'",
        "url('https://example.com:80/').getHostname() == 'example.com'",
        "url('https://[::1]:80/').getHostname() == '::1'",
        "url('https://example.com:80/').getPort() == '80' && url('https://example.com/').getPort() == ''",
        "url('https://h/a b').getEscapedPath() == '/a%20b' && url('HTTP://h/').getScheme() == 'http'",
        "url('https://h/?x=1&y=2&x=3').getQuery() == {'x': ['1', '3'], 'y': ['2']}",
        "isURL('/path') && !isURL('') && !isURL('path') && !isURL('https://h:port/') && !isURL('https://a b/')",
        "isURL('mailto:someone@example.com') && !isURL('https://h/%zz')",
    ],
    "named formats": [
        "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').value().size() == 1",
        "!format.dns1123LabelPrefix().validate('a-').hasValue() && !format.labelValue().validate('').hasValue()",
        "format.named('uuid').value().validate('123e4567-e89b-12d3-a456-426614174000') == optional.none()",
        "!format.date().validate('2024-02-29').hasValue() && format.date().validate('2023-02-29').hasValue()",
        "!format.datetime().validate('2024-01-01T00:00:00Z').hasValue() && format.byte().validate('a').hasValue()",
        "!format.byte().validate('YQ==').hasValue()",
        "format.uri().validate('x').hasValue() && !format.named('x').hasValue()",
        "!format.qualifiedName().validate('a.b/c').hasValue() && format.dns1035Label() == format.dns1035Label()",
    ],
}

FAIL = {
    "no such overload": [
        "dyn(1) + dyn('a') == dyn(1)",
        "dyn('a') < dyn(1)",
        "dyn(1).size() == 1",
        "!dyn(1)",
        "-dyn(true) == 1",
    ],
    "division by zero": ["1 / 0 == 0", "cel.bind(x, 1 / 0, x == 1)"],
    "modulus by zero": ["1 % 0 == 0"],
    "overflow": [
        "9223372036854775807 + 1 > 0",
        "-9223372036854775808 / -1 > 0",
        "0u - 1u == 0u",
        "int(1e19 * double(device.driver.size())) == 0",
        "timestamp(253402300799) + duration('1s') > timestamp(0)",
    ],
    "index out of": ["[1][5] == 1", "'abc'.substring(4) == ''", "'abc'.charAt(-1) == ''"],
    "no such key": ["{'a': 1}['b'] == 1", "{'a': 1}.b == 1", "dyn('a').b == 1"],
    "invalid substring range": ["'abc'.substring(2, 1) == ''"],
    "cannot slice": ["[1].slice(0, 2) == []", "[1].slice(-1, 1) == []"],
    "empty list": ["[].max() == 1"],
    "same type": ["[dyn(1), dyn('a')].sort() == []"],
    "lists.range": ["lists.range(-1) == []", "lists.range(1000001) == []"],
    "dereference": ["optional.none().value() == 1"],
    "regular expression": ["'a'.matches('a' + '[')"],
    "already exists": ["[1, 1].transformMapEntry(i, v, {v: i}) == {}"],
    "cannot be iterated": ["dyn(1).all(x, true)"],
    "not a CIDR": ["cidr('10.0.0.0') == cidr('10.0.0.0/8')"],
    "not an IP": ["cidr('10.0.0.0/8').containsIP('x')"],
    "URL parse error": ["url('x') == url('/x')"],
    "not a semantic version": ["semver('1') == semver('1.0.0')"],
    "internal error": ["dyn(semver('1.0.0')) in {'a': 1}", "dyn(1).distinct() == []"],
    "unknown time zone": ["timestamp(0).getHours('No/Where') == 0"],
    "conversion error": ["int(device.driver) == 1"],
}


def _table(groups: dict[str, list[str]]) -> list[object]:
    return [pytest.param(group, text, id=f"{group}: {text}") for group, texts in groups.items() for text in texts]


@pytest.mark.req("4381-86")
@pytest.mark.parametrize(("group", "expression"), _table(TRUE))
def test_true(group: str, expression: str) -> None:
    assert cel.compile(expression, mode="stored").evaluate({}, driver="d"), group


@pytest.mark.parametrize(("message", "expression"), _table(FAIL))
def test_fails(message: str, expression: str) -> None:
    with pytest.raises(cel.EvaluationError, match=message):
        cel.compile(expression, mode="stored").evaluate({}, driver="d")


@pytest.mark.parametrize(
    "expression",
    [
        "true || 1 / 0 == 0",
        "1 / 0 == 0 || true",
        "!(false && 1 / 0 == 0)",
        "!(1 / 0 == 0 && false)",
        "true ? true : 1 / 0 == 0",
    ],
)
def test_logic_absorbs_errors(expression: str) -> None:
    assert cel.compile(expression).evaluate({}, driver="d")
