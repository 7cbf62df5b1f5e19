use super::{fails, is_true};

#[test]
fn texts_have_the_methods_of_the_standard_and_its_extension() {
    is_true(&[
        "'hello'.contains('ell') && 'hello'.startsWith('he') && 'hello'.endsWith('lo')",
        "'tacocat'.charAt(3) == 'o' && 'tacocat'.charAt(7) == ''",
        "'hello mellow'.indexOf('ello') == 1 && 'hello mellow'.indexOf('ello', 2) == 7",
        "'hello mellow'.indexOf('jello') == -1 && ''.indexOf('') == 0",
        "'hello mellow'.lastIndexOf('ello') == 7 && 'hello mellow'.lastIndexOf('ello', 6) == 1",
        "'élan'.indexOf('a') == 2 && 'élan'.substring(1, 3) == 'la' && 'élan'.substring(2) == 'an'",
        "'TacoCat'.lowerAscii() == 'tacocat' && 'TacoCÆt'.upperAscii() == 'TACOCÆT'",
        "'hello hello'.replace('he', 'we') == 'wello wello' && 'hello hello'.replace('he', 'we', 1) == 'wello hello'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'abc'.split('') == ['a', 'b', 'c'] && 'abc'.split('', 2) == ['a', 'bc'] && 'a'.split(',', 0) == []",
        "['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab'",
        "'  x '.trim() == 'x' && 'abc'.reverse() == 'cba'",
        "'%s has %d of %.2f, %x'.format(['it', 3, 0.5, 255]) == 'it has 3 of 0.50, ff'",
        "'%s'.format([{'a': [1, null]}]) == '{a: [1, null]}' && '%e'.format([1234.5]) == '1.234500e+03'",
        "strings.quote('a\"b') == '\"a\\\\\"b\"'",
        "'{\"a\": [1, 2]}'.parseJSON().a[1] == 2",
    ]);
    fails(&[
        ("'abc'.substring(2, 1) == ''", "no characters from 2 to 1"),
        ("'%d'.format(['a']) == ''", "`%d` is not for a string"),
        ("'{'.parseJSON() == 1", "no JSON"),
    ]);
}

#[test]
fn values_are_converted_where_they_can_be_kept() {
    is_true(&[
        "int('42') == 42 && uint(7) == 7u && double('1.5') == 1.5 && int(-1.9) == -1",
        "string(1.5) == '1.5' && string(1e10) == '1e+10' && string(123456.0) == '123456' &&\
         string(1e6) == '1e+06' && string(0.00001) == '1e-05' && string(1.0 / 0.0) == '+Inf' && string(true) == 'true' && string(b'ab') == 'ab' && bytes('é') == b'é'",
        "bool('true') && !bool('0') && bool('T')",
        "type(1) == int && type('a') == string && type(type(1)) == type && type([]) == list",
    ]);
}

#[test]
fn lists_have_what_kubernetes_adds() {
    is_true(&[
        "[1, 2, 2].isSorted() && !['b', 'a'].isSorted()",
        "[1, 2, 3].sum() == 6 && [].sum() == 0 && [1.5, 1.5].sum() == 3.0",
        "[3, 1, 2].min() == 1 && ['a', 'c', 'b'].max() == 'c'",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(dyn('x')) == -1",
    ]);
    fails(&[("[].min() == 1", "empty list"), ("[1, 'a'].isSorted()", "no order")]);
}

#[test]
fn regular_expressions_match_find_and_find_all() {
    is_true(&[
        "it.name.matches('^ams-[0-9]+$') && matches('xay', 'a')",
        "'abc 123 def 45'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
        "'abc 123 def 45'.findAll('[0-9]+') == ['123', '45'] && 'a1b2'.findAll('[0-9]', 1) == ['1']",
        "'a.b'.matches(it.labels.env + '|a')",
    ]);
    fails(&[("'a'.matches(it.labels.env + '(')", "no regular expression")]);
}

#[test]
fn semantic_versions_compare_as_kubernetes_has_it() {
    is_true(&[
        "semver('1.30.0').isLessThan(semver('1.31.0')) && semver('1.9.0').isLessThan(semver('1.31.0'))",
        "semver('1.0.0-alpha').isLessThan(semver('1.0.0')) && semver('1.0.0-2').isLessThan(semver('1.0.0-alpha'))",
        "semver('1.0.0-alpha.2').compareTo(semver('1.0.0-alpha.10')) == -1",
        "semver('1.2.3+b1') == semver('1.2.3+b2') && semver('2.0.0').isGreaterThan(semver('1.9.9'))",
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "!isSemver('v1.2.3') && !isSemver('1.2') && !isSemver('01.2.3') && isSemver('1.2.3-rc.1')",
    ]);
    fails(&[("semver(it.labels.version).minor() == 30", "`v1.30.2` is no semantic version")]);
}

#[test]
fn quantities_compare_and_add() {
    is_true(&[
        "quantity(it.cpu).isGreaterThan(quantity('12')) && quantity('1Gi') == quantity('1024Mi')",
        "quantity('4000m').compareTo(quantity('4')) == 0 && sign(quantity('-1')) == -1",
        "quantity('50k').isInteger() && quantity('50k').asInteger() == 50000 && !quantity('500m').isInteger()",
        "quantity('2500m').asApproximateFloat() == 2.5",
        "quantity('1').add(quantity('500m')) == quantity('1500m') && quantity('3').sub(1) == quantity('2')",
        "isQuantity('1.3G') && !isQuantity('200K')",
        "quantity('123456789012345678').isInteger() && !quantity('1234567890123456789').isInteger()",
        "!quantity('100Ti').isInteger() && !quantity('1').add(quantity('100Ti')).isInteger()",
        "quantity('8Ei') == quantity('9223372036854775807') && quantity('100E').isGreaterThan(quantity('8Ei'))",
    ]);
    fails(&[
        ("quantity('many') == quantity('1')", "`many`"),
        ("quantity('1') < quantity('2')", "`<` is not for"),
        ("quantity('1').sign() == 1", "reading: at character 14: there is no method `sign`"),
    ]);
}

#[test]
fn urls_and_addresses_are_taken_apart() {
    is_true(&[
        "url('https://user@example.com:80/a%20b?k=v&k=w#x').getHostname() == 'example.com'",
        "url('https://example.com:80/').getPort() == '80' && url('https://[::1]:80/').getHostname() == '::1'",
        "url('https://example.com/a?k=v&k=w').getQuery()['k'] == ['v', 'w']",
        "url('/path').getScheme() == '' && url('/a b'.replace(' ', '%20')).getEscapedPath() == '/a%20b'",
        "isURL('https://a/') && !isURL('../relative') && !isURL('https://a:b:c/')",
        "ip('127.0.0.1').isLoopback() && ip('::1').family() == 6 && ip('8.8.8.8').isGlobalUnicast()",
        "isIP('10.0.0.1') && !isIP('010.0.0.1') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0:0:0:0:0:0:1')",
        "cidr('10.0.0.0/8').containsIP('10.9.8.7') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')",
        "cidr('10.1.2.3/16').masked() == cidr('10.1.0.0/16') && cidr('::/0').containsIP('fe80::1')",
        "string(ip('10.0.0.1')) == '10.0.0.1' && cidr('10.0.0.0/8').prefixLength() == 8 && !isCIDR('10.0.0.0/33')",
    ]);
}

#[test]
fn formats_say_what_a_text_is_not() {
    is_true(&[
        "!format.dns1123Label().validate('my-name').hasValue() && format.dns1123Label().validate('My').hasValue()",
        "!format.named('uuid').value().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
        "!format.named('nonsense').hasValue() && format.date().validate('2021-13-01').hasValue()",
        "!format.qualifiedName().validate('example.com/Name').hasValue()",
    ]);
}

#[test]
fn moments_and_spans_have_no_now() {
    is_true(&[
        "timestamp('2024-02-01T00:00:00Z') + duration('36h') == timestamp('2024-02-02T12:00:00Z')",
        "timestamp('2024-02-01T00:00:00Z') - timestamp('2024-01-31T23:59:30Z') == duration('30s')",
        "timestamp('2024-02-01T10:20:30Z').getHours() == 10 && timestamp('2024-02-01T00:00:00Z').getMonth() == 1",
        "timestamp('2024-02-01T00:00:00Z').getDayOfWeek() == 4 && timestamp(0).getFullYear() == 1970",
        "duration('1.5s').getMilliseconds() == 1500 && string(duration('1.5s')) == '1.5s'",
        "duration('1h30m').getMinutes() == 90 && duration('-1.5s') < duration('0') && string(duration('90s')) == '90s'",
    ]);
    fails(&[
        ("now() > timestamp(0)", "there is no function `now`"),
        ("duration('1 hour') == duration('1h')", "no span"),
        (
            "timestamp('9999-12-30T00:00:00Z') - timestamp('0001-01-01T00:00:00Z') > duration('1s')",
            "can be kept",
        ),
        ("timestamp('9999-12-30T00:00:00Z') + duration('48h') > timestamp(0)", "can be kept"),
    ]);
}
