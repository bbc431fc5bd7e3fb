"""The field numbers of definitions of custom resources (see `messages`)."""

from __future__ import annotations

TABLE = """
CustomResourceDefinition: metadata=1:ObjectMeta spec=2:CustomResourceDefinitionSpec
    status=3:CustomResourceDefinitionStatus
CustomResourceDefinitionSpec: group=1 names=3:CustomResourceDefinitionNames scope=4
    versions=7:*CustomResourceDefinitionVersion conversion=9:CustomResourceConversion preserveUnknownFields=10:bool
CustomResourceDefinitionNames: plural=1 singular=2 shortNames=3:*text kind=4 listKind=5 categories=6:*text
CustomResourceDefinitionVersion: name=1 served=2:bool storage=3:bool schema=4:CustomResourceValidation
    subresources=5:CustomResourceSubresources additionalPrinterColumns=6:*CustomResourceColumnDefinition
    deprecated=7:bool deprecationWarning=8 selectableFields=9:*CustomResourceSelectableField
CustomResourceSelectableField: jsonPath=1
CustomResourceColumnDefinition: name=1 type=2 format=3 description=4 priority=5:int jsonPath=6
CustomResourceSubresources: status=1:CustomResourceSubresourceStatus scale=2:CustomResourceSubresourceScale
CustomResourceSubresourceStatus:
CustomResourceSubresourceScale: specReplicasPath=1 statusReplicasPath=2 labelSelectorPath=3
CustomResourceConversion: strategy=1 webhook=2:ConversionWebhook
ConversionWebhook: clientConfig=2:ConversionWebhookClient conversionReviewVersions=3:*text
ConversionWebhookClient: service=1:ConversionWebhookService caBundle=2:bytes url=3
ConversionWebhookService: namespace=1 name=2 path=3 port=4:int
CustomResourceDefinitionStatus: conditions=1:*CustomResourceDefinitionCondition
    acceptedNames=2:CustomResourceDefinitionNames storedVersions=3:*text observedGeneration=4:int
CustomResourceDefinitionCondition: type=1 status=2 lastTransitionTime=3:time reason=4 message=5
    observedGeneration=6:int
CustomResourceValidation: openAPIV3Schema=1:JSONSchemaProps
JSONSchemaProps: id=1 $schema=2 $ref=3 description=4 type=5 format=6 title=7 default=8:json maximum=9:double
    exclusiveMaximum=10:bool minimum=11:double exclusiveMinimum=12:bool maxLength=13:int minLength=14:int pattern=15
    maxItems=16:int minItems=17:int uniqueItems=18:bool multipleOf=19:double enum=20:*json maxProperties=21:int
    minProperties=22:int required=23:*text items=24:SchemaOrList allOf=25:*JSONSchemaProps oneOf=26:*JSONSchemaProps
    anyOf=27:*JSONSchemaProps not=28:JSONSchemaProps properties=29:@JSONSchemaProps
    additionalProperties=30:SchemaOrBool patternProperties=31:@JSONSchemaProps dependencies=32:@SchemaOrTexts
    additionalItems=33:SchemaOrBool definitions=34:@JSONSchemaProps externalDocs=35:ExternalDocumentation
    example=36:json nullable=37:bool x-kubernetes-preserve-unknown-fields=38:bool
    x-kubernetes-embedded-resource=39:bool x-kubernetes-int-or-string=40:bool x-kubernetes-list-map-keys=41:*text
    x-kubernetes-list-type=42 x-kubernetes-map-type=43 x-kubernetes-validations=44:*SchemaRule
SchemaOrList: schema=1:JSONSchemaProps list=2:*JSONSchemaProps
SchemaOrBool: allows=1:bool schema=2:JSONSchemaProps
SchemaOrTexts: schema=1:JSONSchemaProps texts=2:*text
SchemaRule: rule=1 message=2 messageExpression=3 reason=4 fieldPath=5 optionalOldSelf=6:bool
ExternalDocumentation: description=1 url=2
"""

KINDS = {("apiextensions.k8s.io/v1", "CustomResourceDefinition"): "CustomResourceDefinition"}
